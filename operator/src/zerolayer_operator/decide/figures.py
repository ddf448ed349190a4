"""What is told of a pool that is autoscaled: the same figures in its status, as metrics and on the page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """A pool at one instant.

    Attributes:
        at: The instant, in seconds since 1970.
        wanted: Workers that the serving revision is asked to have.
        ready: Workers of it that can answer.
        window_s: Delay before a scale-down, in seconds.
        floor: Fewest workers that the autoscaler may leave, the hold included.
        hold: The same where it is above the author's own `minReplicas`; ``None`` where nothing is held.
        utilization: Share of the ready workers' capacity in use, in [0, 1]; ``None`` where it is not known.
        offered_slots: Slots that would be busy if nobody waited; ``None`` where that is not known.
        slots: Requests that the ready workers can run at once; ``None`` where that is not known.
        flatness: Of the load, in [0, 1]; ``None`` where it is not known, or not asked for.
        known: Whether the load is known now.
        regrets: Times the pool grew within one cold start after it had shrunk.
        spent_s: Replica-seconds of the pool, since the operator began to look.
        saved_s: Replica-seconds that a fixed window of 300 s would have cost more; negative if less.
        why: A sentence for people on why the window is as it is.
    """

    at: float
    wanted: int
    ready: int
    window_s: int
    floor: int
    hold: int | None = None
    utilization: float | None = None
    offered_slots: float | None = None
    slots: float | None = None
    flatness: float | None = None
    known: bool = False
    regrets: int = 0
    spent_s: float = 0.0
    saved_s: float = 0.0
    why: str = ""
