"""The pool's one queue: first come, first served, by however many slots there are at the moment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numba
import numpy as np

from zerolayer_bench.autoscaling.traces import Floats, Workload

_ARRIVED, _STARTED, _RUNNING = 0, 1, 2
_MOST_RUNNING = 1 << 17


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", numba.njit(cache=True)(function))


@_compiled
def _push(heap: Any, size: Any, value: Any) -> Any:
    at = size
    heap[at] = value
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= heap[at]:
            break
        heap[parent], heap[at] = heap[at], heap[parent]
        at = parent
    return size + 1


@_compiled
def _pop(heap: Any, size: Any) -> Any:
    size -= 1
    heap[0] = heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[at] <= heap[child]:
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child
    return size


@_compiled
def _advance(  # noqa: PLR0917 - numba knows neither keyword-only arguments nor our dataclasses
    arrivals: Any, services: Any, waits: Any, heap: Any, counts: Any, finished: Any,
    begin: Any, end: Any, slots: Any, seen: Any,
) -> None:  # fmt: skip
    """Lets time pass from `begin` to `end`; heap: when each running request ends."""
    arrived, started, running = counts[0], counts[1], counts[2]
    first, total = arrived, len(arrivals)
    now, busy_s, queued_s = begin, 0.0, 0.0
    while True:
        while started < arrived and running < slots:
            waits[started] = now - arrivals[started]
            leaves = now + services[started]
            second = min(int(leaves), finished.shape[0] - 1)
            finished[second, 0] += 1
            finished[second, 1] += services[started]
            running = _push(heap, running, leaves)
            started += 1
        next_arrival = arrivals[arrived] if arrived < total else np.inf
        next_end = heap[0] if running > 0 else np.inf
        until = min(next_arrival, next_end, end)
        busy_s += (until - now) * running
        queued_s += (until - now) * (arrived - started)
        now = until
        if until >= end:
            break
        if next_end <= next_arrival:
            running = _pop(heap, running)
        else:
            arrived += 1
    counts[0], counts[1], counts[2] = arrived, started, running
    seen[0], seen[1], seen[2] = arrived - first, busy_s, queued_s


@dataclass(frozen=True, slots=True)
class Seen:
    """What the workers' counters grew by during some seconds.

    Attributes:
        seconds: that passed.
        arrivals: requests that came.
        busy_s: slot-seconds in which a request ran.
        queued_s: request-seconds spent waiting.
        finished: requests that ended.
        service_s: seconds that those ran, together.
    """

    seconds: int
    arrivals: int
    busy_s: float
    queued_s: float
    finished: int
    service_s: float


@dataclass(slots=True)
class Queue:
    """A workload on its way through a pool.

    Attributes:
        waits: seconds from arrival to the start of prefill; infinite where it never came to that.
    """

    workload: Workload
    waits: Floats = field(init=False)
    _now: int = 0
    _heap: Floats = field(default_factory=lambda: np.zeros(_MOST_RUNNING))
    _counts: Any = field(default_factory=lambda: np.zeros(3, np.int64))
    _finished: Floats = field(init=False)
    _seen: Floats = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        self.waits = np.full(len(self.workload.arrivals), np.inf)
        self._finished = np.zeros((self.workload.duration_s + 1, 2))

    def advance(self, seconds: int, slots: int) -> Seen:
        """Lets whole seconds pass with that many slots; fewer than are busy cut nobody off."""
        begin, end = self._now, self._now + seconds
        _advance(
            self.workload.arrivals, self.workload.services, self.waits, self._heap, self._counts,
            self._finished, float(begin), float(end), slots, self._seen,
        )  # fmt: skip
        self._now = end
        finished, service_s = self._finished[begin:end].sum(axis=0)
        arrivals, busy_s, queued_s = self._seen
        return Seen(seconds, int(arrivals), float(busy_s), float(queued_s), int(finished), float(service_s))
