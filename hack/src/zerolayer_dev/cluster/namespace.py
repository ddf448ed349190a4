"""Sets up the cluster's own mounts and network, as process 1 of its fresh namespaces."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerolayer_dev.cluster.plan import Mount, Plan

LINK = "eth0"
_LINK_TIMEOUT_S = 20.0


def set_up(plan: Plan) -> None:
    """Mount, name the host and bring the network up.

    Raises:
        TimeoutError: the host never passed in its end of the network link.
        subprocess.CalledProcessError: a mount or network command failed.
    """
    socket.sethostname(plan.hostname)
    # Private towards the host (unshare did that), shared towards the containers: volumes that
    # kubelet mounts later must appear in containers that asked for mount propagation.
    _run("mount", "--make-rshared", "/")
    for mount in plan.mounts:
        _mount(mount)
    _run("ip", "link", "set", "lo", "up")
    _await_link()
    _run("ip", "address", "add", plan.address, "dev", LINK)
    _run("ip", "link", "set", LINK, "up")
    # ClusterIPs are nowhere: their packets are readdressed, but not before they have a route.
    _run("ip", "route", "add", plan.services, "dev", LINK, "src", plan.address.partition("/")[0])
    # No way out: a pod that calls the internet fails at once instead of leaving the machine.
    _run("ip", "route", "add", "unreachable", "default")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _mount(mount: Mount) -> None:
    if mount.source is None:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", mount.target)
        return
    _run("mount", "--bind", mount.source, mount.target)


def _await_link() -> None:
    deadline = time.monotonic() + _LINK_TIMEOUT_S
    while LINK not in {name for _, name in socket.if_nameindex()}:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {LINK} within {_LINK_TIMEOUT_S:.0f} s")
        time.sleep(0.01)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
