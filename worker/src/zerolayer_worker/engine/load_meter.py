"""How busy the engine is."""

from collections import deque
from dataclasses import dataclass

WINDOW_S = 15.0


@dataclass(frozen=True, slots=True)
class _Step:
    began: float
    ended: float
    share: float

    def within(self, start: float, end: float) -> float:
        """Its share times its seconds between two instants."""
        return self.share * max(0.0, min(self.ended, end) - max(self.began, start))


class LoadMeter:
    """The share of the schedulable tokens that are scheduled.

    While a step runs, what could be scheduled is a token per slot and, if it has a prompt chunk, the whole
    chunk. While none runs, nothing is scheduled: steps count by how long they take. Times are in seconds of
    one monotonic clock.
    """

    def __init__(self, *, slots: int, chunk: int) -> None:
        self._slots = slots
        self._chunk = chunk
        self._steps: deque[_Step] = deque()
        self._began: float | None = None
        self._share = 0.0
        self._seconds = 0.0

    def begin(self, now: float, *, decoded: int, prefilled: int) -> None:
        """A step begins."""
        possible = self._slots + (self._chunk if prefilled else 0)
        self._share = (decoded + prefilled) / possible
        self._began = now

    def end(self, now: float) -> None:
        """The step is over; nothing happens if none runs."""
        if self._began is not None:
            self._seconds = self.seconds(now)
            self._steps.append(_Step(self._began, now, self._share))
            self._began = None
        self._forget(now)

    def clear(self) -> None:
        """Forgets all steps, and the one that runs."""
        self._steps.clear()
        self._began = None
        self._seconds = 0.0

    def share(self, now: float) -> float:
        """The mean busy share of the last `WINDOW_S` seconds, in [0, 1]."""
        self._forget(now)
        steps = sum(step.within(now - WINDOW_S, now) for step in self._steps)
        return min(1.0, (steps + self._running(now).within(now - WINDOW_S, now)) / WINDOW_S)

    def seconds(self, now: float) -> float:
        """The integral of the busy share over time: seconds of a full engine."""
        return self._seconds + self._running(now).within(0.0, now)

    def _running(self, now: float) -> _Step:
        return _Step(now if self._began is None else self._began, now, self._share)

    def _forget(self, now: float) -> None:
        while self._steps and self._steps[0].ended < now - WINDOW_S:
            self._steps.popleft()
