"""Process 1 of a cluster's namespaces: starts its components, restarts them, ends with them.

When this process ends, however it ends, the kernel ends every other process of
the namespaces with it, containers included.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerolayer_dev.cluster import namespace
from zerolayer_dev.cluster.plan import Component, Plan
from zerolayer_dev.cluster.probes import is_ready
from zerolayer_dev.cluster.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICK_S = 0.05
_GIVE_UP_AFTER = 6
_CALM_S = 30.0
_LOG_TAIL = 15


class ComponentDiedError(RuntimeError):
    """A component ended again and again."""


@dataclass
class Running:
    """The state of one component.

    Attributes:
        component: what to run.
        pid: of its process; None while it does not run.
        started: monotonic second of the last start.
        failures: unexpected ends in a row, each within `_CALM_S` of its start.
        ready: its probe succeeded since the last start.
        done: it was a task and has ended well.
        stopped: it was stopped on purpose and stays so until started.
        start_at: monotonic second before which it is not started again.
    """

    component: Component
    pid: int | None = None
    started: float = 0.0
    failures: int = 0
    ready: bool = False
    done: bool = False
    stopped: bool = False
    start_at: float = 0.0

    def ended(self, status: int, now: float) -> None:
        """Take note that its process ended with an exit status (negative: by that signal)."""
        self.pid, self.ready = None, False
        if self.stopped:
            return
        if self.component.probe is not None and self.component.probe.kind == "exit" and status == 0:
            self.ready = self.done = True
            return
        self.failures = self.failures + 1 if now - self.started < _CALM_S else 1
        self.start_at = now + min(0.1 * 2**self.failures, 5.0)
        if self.failures >= _GIVE_UP_AFTER:
            raise ComponentDiedError(
                f"{self.component.name} ended {self.failures} times in a row, last with status {status}"
            )

    def wants_start(self, ready: Iterable[str], now: float) -> bool:
        """Tell whether it is to be started now, given the names of what is ready."""
        idle = self.pid is None and not self.done and not self.stopped
        return idle and now >= self.start_at and set(self.component.needs) <= set(ready)


@dataclass
class Supervisor:
    """Runs a plan until it is told to end or a component cannot be kept alive."""

    plan: Plan
    running: dict[str, Running] = field(init=False)

    def __post_init__(self) -> None:
        self.running = {item.name: Running(item) for item in self.plan.components}

    def run(self) -> None:
        """Serve until told to end, or until the plan's lifeline breaks.

        Raises:
            ComponentDiedError: a component could not be kept alive.
        """
        with selectors.DefaultSelector() as selector, listen(Path(self.plan.control)) as control:
            woken, wake = socket.socketpair()
            woken.setblocking(False)
            wake.setblocking(False)
            signal.set_wakeup_fd(wake.fileno())
            signal.signal(signal.SIGCHLD, lambda *_: None)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            selector.register(woken, selectors.EVENT_READ)
            selector.register(control, selectors.EVENT_READ)
            if self.plan.lifeline is not None:
                selector.register(self.plan.lifeline, selectors.EVENT_READ)
            while True:
                self.step()
                for key, _ in selector.select(None if self._settled() else _TICK_S):
                    if key.fileobj is control:
                        self._serve(control)
                    elif key.fileobj is woken:
                        woken.recv(4096)
                    else:
                        log("whoever this cluster was started for has ended")
                        return

    def step(self) -> None:
        """Reap what ended, start what is due, probe what runs."""
        self._reap()
        now = time.monotonic()
        for item in self.running.values():
            if item.wants_start(self._ready_names(), now):
                self._start(item, now)
        for item in self.running.values():
            if item.pid is not None and not item.ready:
                item.ready = is_ready(item.component.probe)
                if item.ready:
                    log(f"{item.component.name} ready after {time.monotonic() - item.started:.1f} s")

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out a request from the control socket and return its answer.

        `{"do": "status"}` tells about every component; `stop` (by the signal `signal`, for good
        until `start`), `start` and `signal` act on the component `component`.
        """
        if request["do"] == "status":
            return {
                name: {"pid": item.pid, "ready": item.ready, "failures": item.failures}
                for name, item in self.running.items()
            }
        item = self.running.get(request["component"])
        if item is None:
            return {"error": f"no component {request['component']}; there are {', '.join(self.running)}"}
        if request["do"] == "start":
            item.stopped, item.failures, item.start_at = False, 0, 0.0
        elif item.pid is None:
            return {"error": f"{item.component.name} does not run"}
        else:
            item.stopped = request["do"] == "stop"
            os.kill(item.pid, request["signal"])
        return {}

    def _settled(self) -> bool:
        return all(item.ready or item.stopped for item in self.running.values())

    def _ready_names(self) -> set[str]:
        return {name for name, item in self.running.items() if item.ready}

    def _start(self, item: Running, now: float) -> None:
        command = item.component.command
        output = os.open(
            Path(self.plan.logs) / f"{item.component.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
        )
        item.pid = os.posix_spawn(
            command[0],
            command,
            {"PATH": self.plan.path, "HOME": "/run", "PYTHONDONTWRITEBYTECODE": "1"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
            setsid=True,
        )
        os.close(output)
        item.started, item.ready = now, False

    def _reap(self) -> None:
        """Collect ended processes, orphans of containers among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            item = next((item for item in self.running.values() if item.pid == pid), None)
            if item is not None:
                code = os.waitstatus_to_exitcode(status)
                log(f"{item.component.name} ended with status {code}")
                item.ended(code, time.monotonic())

    def _serve(self, control: socket.socket) -> None:
        connection, _ = control.accept()
        with connection, connection.makefile("rwb") as stream:
            connection.settimeout(1.0)
            try:
                stream.write(json.dumps(self.handle(json.loads(stream.readline()))).encode() + b"\n")
                stream.flush()
            except (OSError, ValueError, KeyError) as error:
                log(f"bad control request: {error!r}")


def log(message: str) -> None:
    """Write a line to the supervisor's own log."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def log_tail(path: Path) -> str:
    """Return the last lines of a log file, indented; empty where there is none."""
    if not path.exists():
        return ""
    lines = path.read_text(errors="replace").splitlines()[-_LOG_TAIL:]
    return "".join(f"\n    {line}" for line in lines)


def main() -> None:
    """Run the plan whose path is the only argument."""
    plan = Plan.read(Path(sys.argv[1]))
    supervisor = Supervisor(plan)
    try:
        namespace.set_up(plan)
        supervisor.run()
    except ComponentDiedError as error:
        name = str(error).split(" ", maxsplit=1)[0]
        log(f"giving up: {error}; the end of its log:{log_tail(Path(plan.logs) / f'{name}.log')}")
        sys.exit(1)


if __name__ == "__main__":
    main()
