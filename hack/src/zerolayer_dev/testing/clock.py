"""A clock for tests of what depends on time."""

import asyncio


class FakeClock:
    """Seconds that pass only when a test says so, or when something sleeps on them.

    Attributes:
        now: what the clock shows.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """What the clock shows."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Lets the time pass at once, and others run."""
        self.now += seconds
        await asyncio.sleep(0)
