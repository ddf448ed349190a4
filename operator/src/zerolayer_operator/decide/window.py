"""The scale-down window and the hold, from what was asked of a pool lately.

A HorizontalPodAutoscaler gives replicas up once nothing within its window asked for them. A short one saves
replicas while the load is flat and is dear while it is bursty; and how long is long enough for the last burst
says little about how high the next one is. So the window follows the flatness of the load, and beside it a
floor under the pool's size, the *hold*, remembers peaks: the older a peak, the tighter it may be packed.

Formulas, over means of 60 s that come every 15 s:

- *flatness* = 1 where the coefficient of variation (standard deviation / mean) of the last 20 minutes is at
  most `flat_cv`, 0 where it is at least `bursty_cv`, linear between.
- *window* = maximum - flatness x (maximum - minimum), in whole steps. The minimum is raised to what the cold
  start is longer than the hold's nearest memory: who shrinks must still know what came a cold start ago.
- *hold*: as many replicas as have slots for the most of these: for the peaks P of the last 225 and 660 s
  P + b x sqrt(P), with b of `near` while the load is flat and `bursty_spare` while it is bursty; and
  flatness x the peak of the last 40 minutes, of means of two minutes. The first is square-root staffing
  (Halfin and Whitt, *Heavy-traffic limits for queues with many exponential servers*, 1981): what arrives at
  random needs spare slots in proportion to its standard deviation, so a small pool needs a larger share.

The figures were chosen on recorded arrivals, see `docs/autoscaling-benchmark.md`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

SAMPLE_S = 15
STEP_S = 60
DWELL_S = 60
_FLATNESS_S = 20 * 60
_FEWEST_SAMPLES = 12


class Staffing(NamedTuple):
    """Spare slots for the peak of the last `seconds`, in square roots of that peak."""

    seconds: int
    spare: float


@dataclass(frozen=True, slots=True)
class Parameters:
    """What was chosen on recorded arrivals: one set for all pools.

    Attributes:
        flat_cv: coefficient of variation up to which a load is flat.
        bursty_cv: coefficient of variation from which on it is bursty.
        near: spare slots for the nearest peaks while the load is flat, the nearest first.
        bursty_spare: the same for each of them while it is bursty.
        far_s: seconds that the farthest peak is remembered for, without spare slots, while the load is flat.
    """

    flat_cv: float = 0.4
    bursty_cv: float = 0.6
    near: tuple[Staffing, ...] = (Staffing(225, 1.9), Staffing(11 * 60, 1.3))
    bursty_spare: float = 1.1
    far_s: int = 40 * 60


CHOSEN = Parameters()
MEMORY_S = CHOSEN.far_s + 60


@dataclass(frozen=True, slots=True)
class Limits:
    """What the pool's author allows: replicas, and seconds of window."""

    min_replicas: int
    max_replicas: int
    min_window_s: int
    max_window_s: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a decision is made from.

    Attributes:
        load: offered load in slots, means of 60 s, one per `SAMPLE_S` seconds, the newest last.
        slots_per_replica: requests that one replica runs at once.
        replicas: that the pool is asked to have now.
        cold_start_s: seconds from scheduled to ready, as measured; infinite where that isn't known.
        unknown: why the load can't be told; None where it can.
        updating: whether an update is on its way.
    """

    load: Sequence[float]
    slots_per_replica: float
    replicas: int
    cold_start_s: float
    unknown: str | None = None
    updating: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """What the autoscaler is set to.

    Attributes:
        window_s: scale-down stabilisation window in seconds.
        floor: fewest replicas.
        replicas: that the pool had when the figures were last good.
        narrowed_at: when the window was last set or narrowed, in seconds of the clock.
        flatness: of the load, 0 to 1; None where it is unknown.
        reason: for people, why the window is as it is.
    """

    window_s: int
    floor: int
    replicas: int
    narrowed_at: float
    flatness: float | None = None
    reason: str = ""


def tune(
    evidence: Evidence, present: Setting, limits: Limits, now: float, parameters: Parameters = CHOSEN
) -> Setting:
    """Returns what the autoscaler is to be set to.

    The window narrows by a step at a time, each after a dwell, and widens at once.

    Args:
        evidence: what was measured.
        present: what the autoscaler is set to; on a new one the widest window and the author's floor.
        limits: the author's.
        now: seconds on the clock of `present.narrowed_at`.
        parameters: other ones than those chosen, to search for better ones.
    """
    if evidence.unknown is not None:
        # What was asked for last still stands: without figures nothing says that less would do.
        floor = _within(max(present.floor, present.replicas), limits)
        return Setting(limits.max_window_s, floor, present.replicas, now, None, evidence.unknown)
    flat = flatness(evidence.load, parameters)
    wanted, reason = _wanted_window(evidence, flat, limits, parameters)
    if present.window_s > limits.max_window_s:
        reason = f"maxWindow is {limits.max_window_s}s"
    window = max(wanted, min(present.window_s, limits.max_window_s) - STEP_S)
    narrowed_at = now
    # A clock that was set back since is not waited for.
    before = min(present.narrowed_at, now)
    if window < present.window_s and now - before < DWELL_S:
        window = min(max(present.window_s, limits.min_window_s), limits.max_window_s)
        narrowed_at = before
    needed = held_replicas(evidence.load, evidence.slots_per_replica, flat, parameters)
    floor = _within(_floor(needed, evidence.replicas, present.floor), limits)
    return Setting(window, floor, evidence.replicas, narrowed_at, flat, reason)


def _floor(needed: int, replicas: int, present: int) -> int:
    """Raises the floor at once, and lowers it where the pool stands on it: else it is in nobody's way."""
    return needed if replicas <= present else max(needed, present)


def flatness(load: Sequence[float], parameters: Parameters = CHOSEN) -> float:
    """Returns how flat the last 20 minutes were, 0 to 1; 0 while there are too few samples to tell."""
    recent = load[-_FLATNESS_S // SAMPLE_S :]
    mean = fmean(recent) if recent else 0.0
    if len(recent) < _FEWEST_SAMPLES or mean <= 0:
        return 0.0
    variation = math.sqrt(fmean((value - mean) ** 2 for value in recent)) / mean
    share = (parameters.bursty_cv - variation) / (parameters.bursty_cv - parameters.flat_cv)
    return min(1.0, max(0.0, share))


def held_replicas(
    load: Sequence[float], slots_per_replica: float, flat: float, parameters: Parameters = CHOSEN
) -> int:
    """Returns the replicas on which the recent peaks fit.

    Args:
        load: as in `Evidence`.
        slots_per_replica: as in `Evidence`.
        flat: flatness, 0 to 1.
        parameters: as for `tune`.
    """
    near = (_staffed(load, staffing, flat, parameters.bursty_spare) for staffing in parameters.near)
    needed = max(*near, flat * _far_peak(load, parameters.far_s))
    return math.ceil(needed / slots_per_replica - 1e-9)


def _staffed(load: Sequence[float], staffing: Staffing, flat: float, bursty_spare: float) -> float:
    peak = max(load[-staffing.seconds // SAMPLE_S :], default=0.0)
    spare = flat * staffing.spare + (1 - flat) * bursty_spare
    return peak + spare * math.sqrt(peak)


def _far_peak(load: Sequence[float], seconds: int) -> float:
    apart = 60 // SAMPLE_S
    recent = load[-(seconds // SAMPLE_S) - apart :]
    later = recent[apart:] if len(recent) > apart else recent
    return max(((now + before) / 2 for now, before in zip(later, recent, strict=False)), default=0.0)


def _wanted_window(
    evidence: Evidence, flat: float, limits: Limits, parameters: Parameters
) -> tuple[int, str]:
    if evidence.updating:
        return limits.max_window_s, "an update is on its way"
    unremembered = evidence.cold_start_s - parameters.near[0].seconds
    shortest = min(limits.max_window_s, max(limits.min_window_s, unremembered))
    steps = math.floor(flat * (limits.max_window_s - shortest) / STEP_S)
    window = limits.max_window_s - steps * STEP_S if flat < 1 else math.ceil(shortest)
    return window, _described(evidence.load, flat)


def _described(load: Sequence[float], flat: float) -> str:
    recent = load[-_FLATNESS_S // SAMPLE_S :]
    if len(recent) < _FEWEST_SAMPLES:
        return "the load is known for too short a time to tell how flat it is"
    minutes = round(len(recent) * SAMPLE_S / 60)
    if not any(recent):
        return f"no load for {minutes}m"
    return f"flatness {flat:.2f} over {minutes}m{'' if flat else ', bursty'}"


def _within(replicas: int, limits: Limits) -> int:
    return min(max(replicas, limits.min_replicas), limits.max_replicas)
