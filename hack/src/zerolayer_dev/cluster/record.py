"""What `up` writes down about a cluster, and whether that cluster still lives."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.layout import SLOTS, Addresses, Size, State, clusters_dir

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one of the same number by when it started."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process that has this number now.

        Raises:
            ProcessLookupError: there is none.
        """
        started = _start_time(pid)
        if started is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, started)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return _start_time(self.pid) == self.started

    def end(self, timeout_s: float = 30.0) -> None:
        """Kill it and wait until it is gone.

        Raises:
            TimeoutError: it is still there.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if not self.alive:
                return
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            if not select.select([descriptor], [], [], timeout_s)[0]:
                raise TimeoutError(f"process {self.pid} does not end")
        finally:
            os.close(descriptor)
            self._collect()

    def _collect(self) -> None:
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return  # another process started it


def _start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None for none and for a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def child_of(pid: int, timeout_s: float = 10.0) -> int:
    """Return the first child of a process, waiting for it to appear.

    Raises:
        TimeoutError: it started none.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.005)
    raise TimeoutError(f"process {pid} started no child")


@dataclass(frozen=True)
class Record:
    """A started cluster.

    Attributes:
        name: of the cluster.
        size: what runs in it.
        slot: decides its addresses.
        outer: the process that ends everything when it ends.
        init: process 1 of the namespaces, as the host numbers it.
        store: folder of its images; None without a node.
    """

    name: str
    size: Size
    slot: int
    outer: Process
    init: Process
    store: str | None

    @property
    def state(self) -> State:
        """The cluster's folder."""
        return State.of(self.name)

    @property
    def addresses(self) -> Addresses:
        """The cluster's addresses."""
        return Addresses.of_slot(self.slot)

    @property
    def alive(self) -> bool:
        """Whether the cluster runs."""
        return self.outer.alive and self.init.alive

    def write(self) -> None:
        """Keep the record in the cluster's folder."""
        unfinished = self.state.record.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(self), indent=2))
        unfinished.rename(self.state.record)

    @classmethod
    def read(cls, state: State) -> Record | None:
        """Return the record kept in a folder; None where there is none."""
        try:
            content = json.loads(state.record.read_text())
        except FileNotFoundError:
            return None
        return cls(
            name=content["name"],
            size=Size(content["size"]),
            slot=content["slot"],
            outer=Process(**content["outer"]),
            init=Process(**content["init"]),
            store=content["store"],
        )


def folders() -> list[State]:
    """Return the folders of all clusters, running or not."""
    return [State(path) for path in sorted(clusters_dir().iterdir()) if path.is_dir()]


def free_slot(used: Collection[int]) -> int:
    """Return the lowest slot that is not used.

    Raises:
        LookupError: all are used.
    """
    free = next((slot for slot in range(SLOTS) if slot not in used), None)
    if free is None:
        raise LookupError(f"all {SLOTS} slots for local clusters are in use")
    return free
