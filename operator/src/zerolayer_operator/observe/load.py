"""How much is asked of a pool, as observed: what its workers' counters grew by, step by step."""

from dataclasses import dataclass
from typing import Final, NamedTuple

STEP_S: Final = 15
"""Seconds between two samples."""

SPAN_S: Final = 3600
"""How far back samples reach."""

MEAN_S: Final = 60
"""Seconds that each sample is about, up to its own instant."""

STALE_S: Final = 45
"""Age beyond which figures say nothing about now."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What the counters of all of a pool's workers grew by within some time.

    Attributes:
        seconds: How long that was.
        arrivals: Requests that came.
        busy_s: Slot-seconds in which a request ran.
        queued_s: Request-seconds spent waiting for a slot.
        finished: Requests that left a slot.
        service_s: Slot-seconds that those took, together.
    """

    seconds: float
    arrivals: float
    busy_s: float
    queued_s: float
    finished: float
    service_s: float

    def scaled(self, seconds: float) -> "Counted":
        """The same rates over another time."""
        factor = seconds / self.seconds
        return Counted(
            seconds,
            self.arrivals * factor,
            self.busy_s * factor,
            self.queued_s * factor,
            self.finished * factor,
            self.service_s * factor,
        )


@dataclass(frozen=True, slots=True)
class LoadSample:
    """A pool during about the minute before an instant.

    Attributes:
        at: The instant, in seconds since 1970.
        counted: What its workers counted; ``None`` where that is not known.
        busy_share: Share of its workers' capacity that was in use, in [0, 1]; ``None`` where not known.
        ready: Workers that could take requests at that instant, as far as is known.
    """

    at: float
    counted: Counted | None = None
    busy_share: float | None = None
    ready: int = 0


@dataclass(frozen=True, slots=True)
class ObservedLoad:
    """A pool's load over the last hour at most.

    Attributes:
        samples: Oldest first, about one per `STEP_S` seconds; the newest one with figures comes last where
            `unknown` is ``None``.
        slots_per_pod: Requests that one worker can run at once; ``None`` where not known.
        unknown: Why the present load is not known, and what to do about it; ``None`` where it is known.
        pending: Whether it is unknown only because nobody has looked for long enough yet.
    """

    samples: tuple[LoadSample, ...] = ()
    slots_per_pod: float | None = None
    unknown: str | None = None
    pending: bool = False


class Requests(NamedTuple):
    """What one worker had to do at an instant; the idler one is the smaller.

    Attributes:
        running: Requests that held a slot.
        waiting: Requests in its queue.
    """

    running: float
    waiting: float
