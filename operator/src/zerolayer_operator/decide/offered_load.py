"""How much is asked of a pool, from what its workers count.

The busy share alone says nothing once every slot is busy, and running plus queued requests count the same
work again for as long as it waits: a queue of a minute's arrivals looks like a minute's arrivals per service
time. So the queue is looked at only to see whether there is one. While there is none the busy slots *are* the
offered load; while there is one, Little's law gives what would be busy if nobody waited.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from zerolayer_operator.observe.load import STEP_S, Counted, LoadSample

_NEGLIGIBLE_QUEUE = 0.5
_MEMORY_S = 600
_FEWEST_FINISHED = 0.1
"""Fewer requests say nothing of the time that one takes: they are what rounding leaves of those forgotten."""


@dataclass(slots=True)
class Estimator:
    """Follows a pool from scrape to scrape."""

    _recent: deque[Counted] = field(default_factory=deque[Counted])
    _seconds: float = 0.0
    _finished: float = 0.0
    _service_s: float = 0.0

    def update(self, counted: Counted) -> float:
        """Returns the mean number of slots that would have been busy had nobody waited."""
        self._remember(counted)
        running = counted.busy_s / counted.seconds
        if counted.queued_s / counted.seconds < _NEGLIGIBLE_QUEUE or self._finished < _FEWEST_FINISHED:
            return running
        return max(running, counted.arrivals / counted.seconds * self._service_s / self._finished)

    def _remember(self, counted: Counted) -> None:
        self._recent.append(counted)
        self._seconds += counted.seconds
        self._finished += counted.finished
        self._service_s += counted.service_s
        while self._seconds - self._recent[0].seconds >= _MEMORY_S:
            old = self._recent.popleft()
            self._seconds -= old.seconds
            self._finished -= old.finished
            self._service_s -= old.service_s


def offered_slots(samples: Iterable[LoadSample]) -> Iterator[float | None]:
    """The offered load of each sample, in slots; ``None`` where it is not known.

    Args:
        samples: Oldest first, a step apart, each about a longer time: of what it counts only the part of one
            step is taken into the mean service time, so that nothing is in there twice.
    """
    estimator = Estimator()
    for sample in samples:
        known = sample.counted
        yield None if known is None else estimator.update(known.scaled(STEP_S))
