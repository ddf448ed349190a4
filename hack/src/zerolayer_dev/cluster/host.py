"""The host's side of a cluster: namespaces, network link, control groups. All of it is undone here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.commands import CommandError, output
from zerolayer_dev.cluster.layout import Addresses, State, cgroup_name, interface_name
from zerolayer_dev.cluster.namespace import LINK
from zerolayer_dev.cluster.record import Process, child_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_CGROUPS = Path("/sys/fs/cgroup")
_EMPTY_TIMEOUT_S = 10.0

UNSHARE = (
    "unshare",
    *("--net", "--pid", "--mount", "--uts", "--ipc"),
    *("--fork", "--mount-proc", "--kill-child"),
)


def start(state: State, inherited: Collection[int]) -> tuple[Process, Process]:
    """Start the supervisor in namespaces of its own.

    Args:
        state: the cluster's folder, plan included.
        inherited: descriptors that it is to hold for as long as it lives.

    Returns:
        The process outside, whose end ends everything, and process 1 inside.
    """
    command = [*UNSHARE, sys.executable, "-m", "zerolayer_dev.cluster.supervisor", str(state.plan)]
    log = os.open(state.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    # Not subprocess: its objects insist on seeing the end of a process that outlives this one.
    pid = os.posix_spawnp(
        command[0],
        command,
        {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
            # A lock or a pipe of whoever called would otherwise stay taken for the cluster's life.
            *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _inheritable() - set(inherited)),
        ],
        setsid=True,
    )
    os.close(log)
    return Process.of(pid), Process.of(child_of(pid))


def _inheritable() -> set[int]:
    """Return this process's descriptors that a program started now would inherit, but for the first three."""
    found: set[int] = set()
    for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):  # the one that listed the folder is closed by now
            if descriptor > 2 and os.get_inheritable(descriptor):  # noqa: PLR2004 - stderr
                found.add(descriptor)
    return found


def link(slot: int, init: Process) -> None:
    """Connect the host to a cluster's network; the link vanishes with the cluster."""
    name, addresses = interface_name(slot), Addresses.of_slot(slot)
    for command in link_commands(name, addresses, init.pid):
        subprocess.run(command, check=True)


def link_commands(name: str, addresses: Addresses, pid: int) -> list[list[str]]:
    """Return the commands that connect the host to the network namespace of a process.

    Args:
        name: of the host's interface.
        addresses: of the cluster.
        pid: a process inside the namespace.
    """
    via = ["via", str(addresses.node), "dev", name]
    return [
        ["ip", "link", "add", name, "type", "veth", "peer", "name", LINK, "netns", str(pid)],
        ["ip", "address", "add", f"{addresses.host}/30", "dev", name],
        ["ip", "link", "set", name, "up"],
        ["ip", "route", "add", str(addresses.services), *via],
        ["ip", "route", "add", str(addresses.pods), *via],
    ]


def unlink(slot: int) -> None:
    """Remove a dead cluster's link; the kernel would do so too, but takes seconds where pods ran.

    Raises:
        CommandError: it could not be removed.
    """
    name = interface_name(slot)
    if name not in interfaces():
        return
    try:
        output(["ip", "link", "delete", name])
    except CommandError:
        if name in interfaces():  # otherwise the kernel was faster
            raise


def interfaces() -> set[str]:
    """Return the names of the host's network interfaces."""
    return {name for _, name in socket.if_nameindex()}


def hierarchies(mountinfo: str) -> list[Path]:
    """Return where control group hierarchies with controllers are mounted.

    Args:
        mountinfo: content of `/proc/self/mountinfo`.
    """
    found: dict[str, list[Path]] = {"cgroup": [], "cgroup2": []}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind = after.split()[0]
        if kind in found:
            found[kind].append(Path(before.split()[4]))
    # With version 1 mounted, version 2 holds no controllers, but runtimes put processes there too.
    return [*found["cgroup"], *found["cgroup2"]]


def create_cgroups(name: str) -> None:
    """Make the control groups below which a cluster's containers run."""
    for root in hierarchies(Path("/proc/self/mountinfo").read_text()):
        delegate_controllers(root)
        group = root / cgroup_name(name)
        group.mkdir(exist_ok=True)
        delegate_controllers(group)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # In version 1 a new group may use no processor and no memory until told which.
            if (group / setting).exists() and (group / "cgroup.clone_children").exists():
                (group / setting).write_text((root / setting).read_text())


def delegate_controllers(group: Path) -> None:
    """Let the groups below a version 2 group use its controllers; version 1 needs nothing."""
    controllers = group / "cgroup.controllers"
    if not controllers.exists():
        return
    for controller in controllers.read_text().split():
        with suppress(OSError):  # one that the kernel keeps to itself does not spoil the others
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def remove_cgroups(name: str) -> None:
    """Remove a dead cluster's empty control groups."""
    for root in hierarchies(Path("/proc/self/mountinfo").read_text()):
        group = root / cgroup_name(name)
        if group.exists():
            _remove_tree(group for group, _, _ in os.walk(group, topdown=False))


def _remove_tree(groups: Iterable[str]) -> None:
    for group in groups:
        deadline = time.monotonic() + _EMPTY_TIMEOUT_S
        while True:
            try:
                Path(group).rmdir()
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)  # killed processes leave their group a moment later
            else:
                break
