"""Pools of simulated workers in real time, whose ready workers share a load that a test sets."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from zerolayer_dev.testing.worker_load import NAMES

_STEP_S: Final = 0.5
_HISTORY_STEP_S: Final = 15.0

Offered = Callable[[float], float]
"""Slots that would be busy if nobody waited, at an instant in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Counts:
    """A worker's counters, by what they are called where their growth is observed; seconds and requests."""

    arrivals: float = 0.0
    busy_s: float = 0.0
    queued_s: float = 0.0
    finished: float = 0.0
    service_s: float = 0.0
    share_s: float = 0.0

    def plus(self, other: "Counts") -> "Counts":
        """Both together."""
        return Counts(
            self.arrivals + other.arrivals,
            self.busy_s + other.busy_s,
            self.queued_s + other.queued_s,
            self.finished + other.finished,
            self.service_s + other.service_s,
            self.share_s + other.share_s,
        )


@dataclass(slots=True)
class SharedLoad:
    """One pool's workers: what comes is divided evenly among those that are there, and waits for a slot.

    A fluid takes the place of single requests, so that a flat load is flat however few requests there are.

    Attributes:
        offered: What is asked of them.
        slots: Requests that a worker runs at once.
        service_s: Seconds that one takes.
        labels: That the series of its workers have in Prometheus, beside the pod's name.
    """

    offered: Offered
    slots: int = 8
    service_s: float = 4.0
    labels: dict[str, str] = field(default_factory=dict[str, str])
    _workers: dict[str, Counts] = field(default_factory=dict[str, Counts])
    _now: float = field(default_factory=time.time)
    _within: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def join(self, worker: str) -> None:
        """A worker takes its part from now on."""
        with self._lock:
            self._advance(time.time())
            self._workers.setdefault(worker, Counts())

    def leave(self, worker: str) -> None:
        """A worker is gone; what it ran, others do."""
        with self._lock:
            self._advance(time.time())
            self._workers.pop(worker, None)

    def replace_history(self, seconds: float) -> Iterator[str]:
        """Has the workers begin that long ago; yields what they would have told Prometheus since then."""
        with self._lock:
            now = time.time()
            self._now, self._within = now - seconds, self.offered(now - seconds)
            self._workers = dict.fromkeys(self._workers, Counts())
            while self._now + _HISTORY_STEP_S < now:
                self._advance(self._now + _HISTORY_STEP_S)
                yield from self._series(f" {round(self._now * 1000)}")

    def to_prometheus(self) -> Iterator[str]:
        """What all of its workers have counted by now."""
        with self._lock:
            self._advance(time.time())
            yield from self._series("")

    def told(self, worker: str) -> str:
        """A worker's own metrics."""
        with self._lock:
            self._advance(time.time())
            return "\n".join([*self._lines(self._workers[worker], "", ""), ""])

    def _series(self, when: str) -> Iterator[str]:
        for worker, counts in self._workers.items():
            labels = ",".join(f'{key}="{value}"' for key, value in ({**self.labels, "pod": worker}).items())
            yield from self._lines(counts, f"{{{labels}}}", when)

    def _lines(self, counts: Counts, labels: str, when: str) -> Iterator[str]:
        for name, short in NAMES.items():
            yield f"{name}{labels} {getattr(counts, short)!r}{when}"
        yield f"zero_layer_slots{labels} {self.slots}{when}"
        yield f"zero_layer_draining{labels} 0{when}"

    def _advance(self, now: float) -> None:
        while self._now < now:
            seconds = min(_STEP_S, now - self._now)
            grown = self._grown(seconds)
            self._workers = {worker: counts.plus(grown) for worker, counts in self._workers.items()}
            self._now += seconds

    def _grown(self, seconds: float) -> Counts:
        """Growth of each worker's counters."""
        workers = len(self._workers)
        if not workers:
            return Counts()
        running = min(self._within, float(self.slots * workers))
        came, ended = (
            rate / self.service_s * seconds / workers for rate in (self.offered(self._now), running)
        )
        busy, waiting = (slots * seconds / workers for slots in (running, self._within - running))
        self._within += (came - ended) * workers
        return Counts(came, busy, waiting, ended, ended * self.service_s, busy / self.slots)
