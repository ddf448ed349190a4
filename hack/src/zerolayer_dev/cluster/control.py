"""Asks a running supervisor about its components and tells it to stop, start or signal one."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zerolayer_dev.cluster.api import ClusterError
from zerolayer_dev.cluster.sockets import connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Control:
    """The supervisor's control socket.

    Attributes:
        path: of the socket.
    """

    path: Path

    def status(self) -> dict[str, dict[str, Any]]:
        """Return, per component, its `pid` (as numbered inside), `ready` and `failures`."""
        return self._ask({"do": "status"})

    def stop(self, component: str, by: signal.Signals = signal.SIGKILL) -> None:
        """End a component and keep it from being started again."""
        self._ask({"do": "stop", "component": component, "signal": int(by)})
        self.wait(lambda status: status[component]["pid"] is None, f"{component} to end")

    def start(self, component: str, timeout_s: float = 60) -> None:
        """Start a stopped component and wait until it is ready."""
        self._ask({"do": "start", "component": component})
        self.wait(lambda status: status[component]["ready"], f"{component} to be ready", timeout_s)

    def signal(self, component: str, which: signal.Signals) -> None:
        """Send a component a signal; one that ends by it is started again."""
        self._ask({"do": "signal", "component": component, "signal": int(which)})

    def wait(
        self, condition: Callable[[dict[str, dict[str, Any]]], bool], what: str, timeout_s: float = 60
    ) -> None:
        """Wait until a condition on the status holds.

        Args:
            condition: takes what `status` returns.
            what: is waited for, for the message.
            timeout_s: seconds.

        Raises:
            TimeoutError: it did not hold in time.
        """
        deadline = time.monotonic() + timeout_s
        while not condition(self.status()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
            time.sleep(0.02)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with connect(self.path, _TIMEOUT_S) as client, client.makefile("rwb") as stream:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            answer: dict[str, Any] = json.loads(stream.readline())
        if "error" in answer:
            raise ClusterError(answer["error"])
        return answer
