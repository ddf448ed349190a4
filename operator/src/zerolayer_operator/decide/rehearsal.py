"""What a window would have done with the load of late: the figures behind the sentence in the status."""

from collections.abc import Sequence
from dataclasses import dataclass

from zerolayer_operator.decide.hpa_replay import Behavior, Bounds, Replay, Rules, per_pod_proposal
from zerolayer_operator.decide.window import SAMPLE_S, flatness, held_replicas


@dataclass(frozen=True, slots=True)
class Stage:
    """What a rehearsal is played on.

    Attributes:
        load: offered load in slots, means of 60 s, one per `SAMPLE_S` seconds, the newest last.
        slots_per_replica: requests that one replica runs at once.
        target_slots: slots that the autoscaler wants busy per replica.
        bounds: the author's.
        behavior: how the pool may grow, and how it may shrink but for the window.
        cold_start_s: seconds from scheduled to ready.
    """

    load: Sequence[float]
    slots_per_replica: float
    target_slots: float
    bounds: Bounds
    behavior: Behavior
    cold_start_s: float


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of it.

    Attributes:
        replica_s: replica-seconds.
        regrets: times it grew within one cold start after it had shrunk.
    """

    replica_s: float
    regrets: int


def rehearse(stage: Stage, window_s: int) -> Rehearsal:
    """Replays the load with one window all along, and the hold beside it."""
    down = stage.behavior.down
    behavior = Behavior(stage.behavior.up, Rules(window_s, down.policies, down.select, down.tolerance))
    replay, spent, regrets, shrunk_at = Replay(), 0.0, 0, float("-inf")
    replicas = max(stage.bounds.minimum, _proposal(stage, 0, 0, behavior)) if stage.load else 0
    for look in range(len(stage.load)):
        now = float(look * SAMPLE_S)
        past = stage.load[: look + 1]
        floor = held_replicas(past, stage.slots_per_replica, flatness(past))
        least = min(max(floor, stage.bounds.minimum), stage.bounds.maximum)
        after = replay.sync(
            now,
            replicas,
            _proposal(stage, look, replicas, behavior),
            Bounds(least, stage.bounds.maximum),
            behavior,
        )
        regrets += after > replicas and now - shrunk_at <= stage.cold_start_s
        shrunk_at = now if after < replicas else shrunk_at
        spent, replicas = spent + after * SAMPLE_S, after
    return Rehearsal(spent, regrets)


def _proposal(stage: Stage, look: int, replicas: int, behavior: Behavior) -> int:
    return per_pod_proposal(
        round(stage.load[look] * 1000), round(stage.target_slots * 1000), replicas, behavior
    )


def compare(stage: Stage, before_s: int, after_s: int) -> str:
    """Returns the sentence about a change of window: from, to, and what a replay makes of it."""
    before, after = rehearse(stage, before_s), rehearse(stage, after_s)
    minutes = round(len(stage.load) * SAMPLE_S / 60)
    saved = 100 * (1 - after.replica_s / before.replica_s) if before.replica_s else 0.0
    verb, share = ("saves", saved) if saved >= 0 else ("costs", -saved)
    more = after.regrets - before.regrets
    return (
        f"{before_s}s → {after_s}s, a replay of the last {minutes}m {verb} {share:.1f} % replica-time, "
        f"{max(0, more)} more regrets"
    )
