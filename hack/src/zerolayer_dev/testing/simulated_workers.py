"""Workers in virtual time, with a worker's own account of its load, and a server that tells their metrics."""

import heapq
import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, cast

from zerolayer_worker.engine.api import LoadCounts
from zerolayer_worker.engine.load_account import LoadAccount


@dataclass(frozen=True, slots=True)
class Phase:
    """A time with one load: seconds from the beginning, and the slots that would be busy if nobody waited."""

    begin: float
    end: float
    offered: float


def arrivals(phases: Iterable[Phase], service_s: float, chance: random.Random) -> list[float]:
    """When requests come, at random times; each takes `service_s` seconds."""
    return [at for phase in phases for at in _poisson(phase, service_s, chance)]


def _poisson(phase: Phase, service_s: float, chance: random.Random) -> Iterator[float]:
    at = phase.begin
    while (at := at + chance.expovariate(phase.offered / service_s)) < phase.end:
        yield at


class SimulatedWorker:
    """A worker that runs each request for the same time, first come, first served.

    Args:
        slots: Requests that it runs at once.
        service_s: Seconds that each takes.
        arrivals: When they come, in order.
        begin: When it begins; all in seconds since 1970.
        end: When it is gone, if it ever is.
    """

    def __init__(
        self, slots: int, service_s: float, arrivals: Sequence[float], begin: float, end: float | None = None
    ) -> None:
        self.slots = slots
        self.begin = begin
        self._end = end
        self._events = sorted(_events(slots, service_s, arrivals))

    def lives(self, now: float) -> bool:
        """Whether it answers at an instant."""
        return self.begin <= now and (self._end is None or now < self._end)

    def account(self) -> "Account":
        """What it counts, from its beginning on."""
        return Account(iter(self._events))


class Account:
    """A worker's counters as time goes on."""

    def __init__(self, events: Iterator[tuple[float, int, str]]) -> None:
        self._events = events
        self._next = next(events, None)
        self._account = LoadAccount()

    def counts(self, now: float) -> LoadCounts:
        """What it has counted by an instant, which is not before the last one."""
        account = self._account
        while self._next is not None and self._next[0] <= now:
            at, what, request = self._next
            (account.arrived, account.started, account.left)[what](request, at)
            self._next = next(self._events, None)
        return account.counts(now)


def _events(slots: int, service_s: float, arrivals: Sequence[float]) -> Iterator[tuple[float, int, str]]:
    free = [0.0] * slots
    for number, at in enumerate(arrivals):
        start = max(at, heapq.heappop(free))
        heapq.heappush(free, start + service_s)
        yield from (
            (instant, what, str(number)) for what, instant in enumerate((at, start, start + service_s))
        )


class Exporter:
    """Tells the workers' metrics, each at a loopback address of its own and all at one port.

    Prometheus gets from one scrape to the next what a worker had counted a step later, until that is now.
    Others get what it has counted at the instant that `now` says, times a factor.

    Args:
        workers: By address.
        step_s: Seconds from one scrape of Prometheus to the next.
    """

    def __init__(self, workers: Mapping[str, SimulatedWorker], step_s: float) -> None:
        self.now = 0.0
        self.factor = 1.0
        self._workers = workers
        self._step_s = step_s
        self._told = {host: worker.begin for host, worker in workers.items()}
        self._accounts = {host: worker.account() for host, worker in workers.items()}
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"exporter": self})
        self._server = ThreadingHTTPServer(("0.0.0.0", 0), handler)  # noqa: S104 - all of the loopback network
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    @property
    def caught_up(self) -> bool:
        """Whether Prometheus has got all but the last steps of every worker."""
        now = time.time()
        return all(at > now - 2 * self._step_s for at in self._told.values())

    def answer(self, host: str, *, to_prometheus: bool) -> str | None:
        """What a worker tells; ``None`` where it does not live."""
        worker = self._workers.get(host)
        if worker is None:
            return None
        if not to_prometheus:
            counts = worker.account().counts(self.now)
            return metrics_text(counts, worker.slots, self.factor) if worker.lives(self.now) else None
        with self._lock:
            self._told[host] = instant = min(self._told[host] + self._step_s, time.time())
            counts = self._accounts[host].counts(instant)
        return (
            metrics_text(counts, worker.slots, when=f" {round(instant * 1000)}")
            if worker.lives(instant)
            else None
        )


def metrics_text(counts: LoadCounts, slots: int, factor: float = 1.0, when: str = "") -> str:
    """What a worker's operations port tells of its load.

    Args:
        counts: What it has counted.
        slots: Requests that it runs at once.
        factor: By which it tells more than it has counted.
        when: Time of the samples, with a blank before it; now if empty.
    """
    values = {
        "zero_layer_requests_received_total": counts.received,
        "zero_layer_requests_served_total": counts.served,
        "zero_layer_busy_slot_seconds_total": counts.busy_slot_seconds,
        "zero_layer_waiting_request_seconds_total": counts.waiting_request_seconds,
        "zero_layer_served_slot_seconds_total": counts.served_slot_seconds,
        "zero_layer_busy_share_seconds_total": counts.busy_slot_seconds / slots,
    }
    lines = [f"{name} {value * factor!r}{when}" for name, value in values.items()]
    return "\n".join([*lines, f"zero_layer_slots {slots}{when}", f"zero_layer_draining 0{when}", ""])


class _Handler(BaseHTTPRequestHandler):
    exporter: Exporter

    def do_GET(self) -> None:
        host = cast("tuple[str, int]", self.connection.getsockname())[0]
        by = self.headers.get("user-agent", "")
        body = self.exporter.answer(host, to_prometheus=by.startswith("Prometheus"))
        content = (body or "").encode()
        self.send_response(503 if body is None else 200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        # Whoever asked may have given up by now.
        with suppress(ConnectionError):
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class calls it so
        """Says nothing: a test's output is its own."""
