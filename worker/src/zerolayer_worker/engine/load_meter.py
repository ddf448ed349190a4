"""How busy the engine was lately."""

from collections import deque
from dataclasses import dataclass

WINDOW_S = 15.0


@dataclass(frozen=True, slots=True)
class _Step:
    ended: float
    seconds: float
    share: float


class LoadMeter:
    """The share of the schedulable tokens that were scheduled, over the last `WINDOW_S` seconds.

    While a step runs, what could be scheduled is a token per slot and, if it has a prompt chunk, the whole
    chunk. While none runs, nothing is scheduled: steps count by how long they took.
    """

    def __init__(self, *, slots: int, chunk: int) -> None:
        self._slots = slots
        self._chunk = chunk
        self._steps: deque[_Step] = deque()

    def record(self, *, ended: float, seconds: float, decoded: int, prefilled: int) -> None:
        """Adds a step; times in seconds of one monotonic clock."""
        possible = self._slots + (self._chunk if prefilled else 0)
        self._steps.append(_Step(ended, seconds, (decoded + prefilled) / possible))
        self._forget(ended)

    def clear(self) -> None:
        """Forgets all steps."""
        self._steps.clear()

    def share(self, now: float) -> float:
        """The busy share in [0, 1]."""
        self._forget(now)
        return min(1.0, sum(step.seconds * step.share for step in self._steps) / WINDOW_S)

    def _forget(self, now: float) -> None:
        while self._steps and self._steps[0].ended < now - WINDOW_S:
            self._steps.popleft()
