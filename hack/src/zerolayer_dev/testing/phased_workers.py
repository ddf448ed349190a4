"""Workers under a load that changes from one phase to the next, for those who ask them and for Prometheus."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

from zerolayer_dev.testing.simulated_workers import Phase
from zerolayer_dev.testing.worker_load import NAMES, SteadyWorker
from zerolayer_operator.api import queries
from zerolayer_operator.build.meta import OPS_PORT

_STEP_S: Final = 15.0
"""Seconds from one sample of what is past to the next."""


@dataclass(frozen=True, slots=True)
class PhasedWorker:
    """A worker that has gone through some phases, and stays in the last one.

    Attributes:
        phases: Busy slots of this worker alone, from and to instants in seconds since 1970.
        slots: Requests that it runs at once.
        service_s: Seconds that each takes.
    """

    phases: tuple[Phase, ...]
    slots: int = 8
    service_s: float = 4.0

    def counted(self, now: float) -> dict[str, float]:
        """Its counters at an instant, under the names of its metrics."""
        total = dict.fromkeys(NAMES, 0.0)
        for phase in self.phases:
            seconds = min(now, phase.end) - phase.begin
            if seconds > 0:
                steady = SteadyWorker(self.slots, phase.offered / self.service_s, self.service_s)
                grown = steady.counted(seconds)
                total = {name: value + grown[NAMES[name]] for name, value in total.items()}
        return total

    def lines(self, now: float, labels: str = "", when: str = "") -> list[str]:
        """The same in Prometheus' text format."""
        values = {**self.counted(now), "zero_layer_slots": self.slots, "zero_layer_draining": 0}
        return [f"{name}{labels} {value!r}{when}" for name, value in values.items()]


Lie = Callable[[str, float], float]
"""What is told instead of a metric's true value, by the metric's name."""


def truth(_metric: str, value: float) -> float:
    """What it gets unless a test wants something else."""
    return value


class PhasedWorkers:
    """All workers of a pool, as alike as can be, each at a loopback address and the operations port.

    Prometheus is told at one address of all of them, by their labels, from their beginning on.

    Attributes:
        worker: What each of them has been through.
        lie: What Prometheus gets instead of a metric's true value.
    """

    def __init__(self, worker: PhasedWorker) -> None:
        self.worker = worker
        self.lie: Lie = truth
        self._told: dict[str, float] = {}
        self._labels: dict[str, str] = {}
        # Other tests may run at the same time, and the port is always the same one.
        self._network = f"127.{os.getpid() % 200 + 20}.{secrets.randbelow(250)}"
        self._servers: list[ThreadingHTTPServer] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._exporter = self._serve("127.0.0.1", 0, self._to_prometheus)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def target(self) -> str:
        """Where Prometheus scrapes."""
        return f"127.0.0.1:{self._exporter.server_port}"

    @property
    def caught_up(self) -> bool:
        """Whether Prometheus knows all workers up to now."""
        with self._lock:
            return bool(self._told) and all(at > time.time() - _STEP_S for at in self._told.values())

    def add(self, pod: str, labels: Sequence[str]) -> str:
        """Lets a worker begin, and returns its address.

        Args:
            pod: Its name.
            labels: Namespace, pool and revision.
        """
        address = f"{self._network}.{len(self._servers)}"
        self._serve(address, OPS_PORT, lambda: self.worker.lines(time.time()))
        named = {**queries.workers(*labels), "pod": pod}
        with self._lock:
            self._labels[pod] = "{" + ",".join(f'{name}="{value}"' for name, value in named.items()) + "}"
            self._told[pod] = self.worker.phases[0].begin
        return address

    def _to_prometheus(self) -> list[str]:
        with self._lock:
            return [self._told_line(line) for pod in self._labels for line in self._news(pod)]

    def _news(self, pod: str) -> Iterator[str]:
        """All that Prometheus has not been told of a worker yet."""
        now = time.time()
        while self._told[pod] < now:
            self._told[pod] = at = min(self._told[pod] + _STEP_S, now)
            yield from self.worker.lines(at, self._labels[pod], f" {round(at * 1000)}")

    def _told_line(self, line: str) -> str:
        named, value, when = line.split(" ")
        return f"{named} {self.lie(named.partition('{')[0], float(value))!r} {when}"

    def _serve(self, address: str, port: int, lines: Callable[[], list[str]]) -> ThreadingHTTPServer:
        handler = type("Handler", (_Handler,), {"lines": staticmethod(lines)})
        server = ThreadingHTTPServer((address, port), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._servers.append(server)
        return server


class _Handler(BaseHTTPRequestHandler):
    lines: Callable[[], list[str]]

    def do_GET(self) -> None:
        content = "\n".join([*self.lines(), ""]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        # Whoever asked may have given up by now.
        with suppress(ConnectionError):
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class calls it so
        """Says nothing: a test's output is its own."""
