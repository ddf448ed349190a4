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
        spent_s: Replica-seconds of the pool.
        saved_s: Replica-seconds that a fixed window of 300 s would have cost more; negative if less.
        first_token_p99_s: 99th percentile of the time to the first token during about the last minute, in
            seconds; ``None`` where it is not known, or not asked for.
        latency_penalty: What the pool's replica-time of that minute is weighted with; ``None`` likewise.
        penalty_s: Replica-seconds that such weights have added to `spent_s`; ``None`` before one was known.
        spent: Price of `spent_s`; ``None`` where the pool has no price.
        weighted: Price of `spent_s` and `penalty_s`; ``None`` where nothing was weighted.
        saved: Price of `saved_s` without `penalty_s`; ``None`` where the pool has no price.
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
    first_token_p99_s: float | None = None
    latency_penalty: float | None = None
    penalty_s: float | None = None
    spent: str | None = None
    weighted: str | None = None
    saved: str | None = None
    why: str = ""
