"""The life of a worker: loading, ready, draining; and the requests it has accepted."""

import asyncio
import math
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from zerolayer_worker.engine.api import Engine
from zerolayer_worker.server import limits


class Lifecycle:
    """What probes, drain and requests need to know about the process. Event-loop only, but for `on_stage`.

    Attributes:
        engine: None until the model is loaded and warmed up.
        stage: what start-up is doing.
        stages: seconds each finished stage of start-up took.
        in_flight: requests accepted and not yet answered.
        cut: set when the drain's time is over and what is still open has to end.
    """

    def __init__(self, drain_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.engine: Engine | None = None
        self.stage = "load"
        self.stages: Mapping[str, float] = {}
        self.in_flight = 0
        self.cut = asyncio.Event()
        self._clock = clock
        self._drain_seconds = drain_seconds
        self._draining_since: float | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._last_end = -math.inf

    def on_stage(self, name: str) -> None:
        """Called by the loading thread when a stage of start-up begins."""
        self.stage = name

    def loaded(self, engine: Engine, stages: Mapping[str, float]) -> None:
        """Start-up is over: requests can be answered."""
        self.engine = engine
        self.stages = dict(stages)
        self.stage = "ready"

    @property
    def draining(self) -> bool:
        """Whether the worker was told to go."""
        return self._draining_since is not None

    def begin_drain(self) -> None:
        """Tells clients to go elsewhere from now on; requests are still answered. Idempotent."""
        if self._draining_since is None:
            self._draining_since = self._clock()

    def drain_left(self) -> float:
        """Seconds until what is still open is cut off."""
        if self._draining_since is None:
            return self._drain_seconds
        return max(0.0, self._draining_since + self._drain_seconds - self._clock())

    @contextmanager
    def request(self) -> Generator[None]:
        """Counts a request as in flight."""
        self.in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            self._last_end = self._clock()
            if not self.in_flight:
                self._idle.set()

    def grace_left(self) -> float:
        """Seconds until endpoints no longer name a worker that began to drain, or until its time is over."""
        gone = self._drain_seconds - self.drain_left()
        return min(max(0.0, limits.DRAIN_GRACE_S - gone), self.drain_left())

    def settles_in(self) -> float | None:
        """Seconds until the drain is over if no more requests come; None while some are in flight.

        It is over when the grace is, and no request has ended for as long: a client whose stream began before
        the drain was not told to go elsewhere, and may send its next request on the same connection right
        behind the last one's end.
        """
        if self.in_flight:
            return None
        quiet_left = self._last_end + limits.DRAIN_GRACE_S - self._clock()
        return max(0.0, self.grace_left(), quiet_left)

    async def drain(self) -> bool:
        """Starts the drain, where it has not, and waits until it is over.

        Returns:
            False if its time was over first.
        """
        self.begin_drain()
        try:
            async with asyncio.timeout(self.drain_left()):
                while (seconds := self.settles_in()) != 0:
                    await (self._idle.wait() if seconds is None else asyncio.sleep(seconds))
        except TimeoutError:
            return False
        return True

    async def answered(self) -> bool:
        """Waits until nothing is in flight.

        Returns:
            False if the drain's time was over first.
        """
        try:
            async with asyncio.timeout(self.drain_left()):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def cut_off(self) -> None:
        """Ends what is still open."""
        self.cut.set()
