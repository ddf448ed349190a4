"""How many CPUs this process may use, and a thread pool that does not waste them."""

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def quiet_waiting() -> None:
    """Makes idle compute threads sleep; by default they spin and slow everything beside them.

    Read by the OpenMP runtime when it is loaded, hence to be called before torch is imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")


def available_cpus(cgroup: Path = CGROUP) -> int:
    """Whole CPUs by affinity and by the control group's quota; at least 1."""
    allowed = len(os.sched_getaffinity(0))
    quota = _quota(cgroup)
    return allowed if quota is None else max(1, min(allowed, math.floor(quota)))


def _quota(cgroup: Path) -> float | None:
    """CPUs' worth of time, of cgroup v2 or v1; None without a limit."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota in {"max", "-1"}:
        return None
    return int(quota) / int(period)
