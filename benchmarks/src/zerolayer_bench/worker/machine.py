"""What the machine is, how busy it is, and how fast it reads."""

import os
import platform
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from zerolayer_dev.testing import records

_PACKAGES: Final = ("torch", "transformers", "xllamacpp", "openvino", "openvino-genai")
_FLAGS: Final = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
# Well above any last-level cache.
_BUFFER_BYTES: Final = 1 << 30
_READS: Final = 7


def describe(root: Path) -> dict[str, Any]:
    """Returns processor, versions and commit; nothing that identifies the host."""
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = next(line.partition(":")[2].split() for line in cpu.splitlines() if line.startswith("flags"))
    return {
        "machine": records.machine(),
        "flags": [flag for flag in _FLAGS if flag in flags],
        "l3_mib": _l3_bytes() / 2**20,
        "kernel": platform.release().partition("-")[0],
        "versions": {name: metadata.version(name) for name in _PACKAGES},
        "commit": records.commit(root),
        "date": records.today(),
        "threads": len(os.sched_getaffinity(0)),
    }


def read_bandwidth(threads: int) -> float:
    """Bytes per second that `threads` threads read from memory: the best of several sums of 1 GiB."""
    import torch  # noqa: PLC0415 - the parent process needs none of it

    torch.set_num_threads(threads)
    buffer = torch.ones(_BUFFER_BYTES // 4)
    best = 0.0
    for _ in range(_READS):
        began = time.perf_counter()
        buffer.sum()
        best = max(best, _BUFFER_BYTES / (time.perf_counter() - began))
    return best


def load() -> float:
    """Load average over a minute."""
    return os.getloadavg()[0]


def forget_peak() -> None:
    """Lets the peak of the resident set begin anew, where the kernel allows it."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mib() -> float:
    """Largest resident set of this process since `forget_peak`, in MiB."""
    return high_water_mib(Path("/proc/self/status").read_text(encoding="utf-8").splitlines())


def high_water_mib(status: Iterable[str]) -> float:
    """Reads `VmHWM` out of the lines of `/proc/<pid>/status`."""
    line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


@dataclass(frozen=True, slots=True)
class Clock:
    """Processor seconds so far: of everybody, of this process, and there were, on all processors."""

    everybody: float
    own: float
    there_were: float

    def others_share(self, since: "Clock") -> float:
        """Share of the processors that others took since then, in [0, 1]."""
        total = self.there_were - since.there_were
        others = (self.everybody - since.everybody) - (self.own - since.own)
        return min(1.0, max(0.0, others / total)) if total > 0 else 0.0


def clock() -> Clock:
    """Reads the processors' account."""
    line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    everybody, there_were = parse_stat(line, os.sysconf("SC_CLK_TCK"))
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Clock(everybody, used.ru_utime + used.ru_stime, there_were)


def parse_stat(line: str, ticks: int) -> tuple[float, float]:
    """Returns busy and all seconds of the `cpu` line; time that the host took counts as busy."""
    user, nice, system, idle, wait, irq, soft, steal = (int(word) for word in line.split()[1:9])
    busy = user + nice + system + irq + soft + steal
    return busy / ticks, (busy + idle + wait) / ticks


def wait_until_quiet(most_share: float, patience_s: float) -> bool:
    """Waits until others leave the processors alone for a second; says whether they did."""
    until = time.monotonic() + patience_s
    while True:
        before = clock()
        time.sleep(1)
        if clock().others_share(before) <= most_share:
            return True
        if time.monotonic() >= until:
            return False


def _l3_bytes() -> int:
    size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return int(size.read_text(encoding="ascii").strip().rstrip("K")) * 1024 if size.exists() else 0
