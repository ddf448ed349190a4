"""How a pool's autoscaler is to be set after one look at its load, and the sentence that says why."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from zerolayer_operator.api.metric import MetricType
from zerolayer_operator.api.scaling import AutoscalingSpec, ScaleDownMode
from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.api.types import seconds
from zerolayer_operator.decide.behavior import behavior_of
from zerolayer_operator.decide.hpa_replay import Bounds
from zerolayer_operator.decide.offered_load import offered_slots
from zerolayer_operator.decide.rehearsal import Stage, compare
from zerolayer_operator.decide.window import SAMPLE_S, Evidence, Limits, Setting, tune
from zerolayer_operator.observe.autoscaler import AutoscalerSetting, Metric
from zerolayer_operator.observe.load import LoadSample, ObservedLoad

PATIENCE_S: Final = 90.0
"""How long a load may be unknown because nobody has looked for long enough yet: the operator just started."""

_BRIDGED_S: Final = 4 * SAMPLE_S
"""Longest gap in the figures over which the last one is taken to have lasted."""

FIXED: Final = "spec.autoscaling.scaleDown.mode is Fixed"
"""Why the window is as it is where it follows no load."""

_LEAST_TARGET: Final = 0.001
"""Slots per worker, below which a target is none: an autoscaler counts in thousandths."""

_REMEMBERED_S: Final = 10 * 60
"""Time that figures have to be about before a hold is given up that was found with more of them."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a pool that is autoscaled.

    Attributes:
        scaling: What its author wants.
        live: How the autoscaler is set; ``None`` where there is none yet.
        replicas: Workers that the serving revision is asked to have.
        ready: Workers of it that can answer.
        cold_start_s: Seconds from scheduled to ready, as measured; infinite where that isn't known.
        load: What is known of the load.
        metric: What the autoscaler was fed last, where that is known.
        updating: Whether another revision is to take over.
        told: What the status said last, where it did.
    """

    scaling: AutoscalingSpec
    live: AutoscalerSetting | None
    replicas: int
    ready: int
    cold_start_s: float
    load: ObservedLoad
    metric: Metric | None = None
    updating: bool = False
    told: ScalingStatus | None = None

    @property
    def by_load(self) -> bool:
        """Whether the window follows the load."""
        return self.scaling.scale_down.mode == ScaleDownMode.FLATNESS

    @property
    def asleep(self) -> bool:
        """Whether the pool has no worker because nobody asks."""
        return self.scaling.scale_to_zero and self.replicas == 0

    @property
    def limits(self) -> Limits:
        """The author's limits."""
        down = self.scaling.scale_down
        return Limits(self.scaling.min_replicas, self.scaling.max_replicas, down.shortest_s, down.longest_s)


@dataclass(frozen=True, slots=True)
class Tuning:
    """What came of a look.

    Attributes:
        setting: What the autoscaler is to be set to.
        by_load: Whether the window follows the load.
        offered: The newest figure of the offered load, in slots; ``None`` where the load is unknown.
        unknown: Why the load is not known; ``None`` where it is.
        pending: Whether that is so only because nobody has looked for long enough yet.
        why: The sentence for people.
    """

    setting: Setting
    by_load: bool
    offered: float | None
    unknown: str | None
    pending: bool
    why: str


def look_closely(look: Look, remembered: Setting | None, waiting_s: float, now: float) -> Tuning:
    """Decides what the autoscaler is to be set to.

    Args:
        look: What was seen.
        remembered: What the last look came to; ``None`` for the first one, as after the operator's start.
        waiting_s: Seconds since the first look.
        now: The time, in seconds since 1970.
    """
    series = tuple(known_load(look.load.samples))
    unknown = _unknown(look.load, series)
    pending = look.by_load and look.load.pending and waiting_s < PATIENCE_S
    present = _present(look, remembered, now)
    if look.asleep:
        # What the pool had before it slept says nothing of the requests that will wake it.
        present = replace(present, floor=look.scaling.min_replicas, replicas=0)
    if not look.by_load:
        down = look.scaling.scale_down
        setting = Setting(down.fixed_s, look.scaling.min_replicas, look.replicas, now)
    elif pending:
        setting = _as_it_is(present, look.limits)
    else:
        setting = _tuned(look, series, unknown, present, now)
    return Tuning(
        setting=setting,
        by_load=look.by_load,
        offered=series[-1] if unknown is None else None,
        unknown=unknown,
        pending=pending,
        why=_why(look, series, setting),
    )


def known_load(samples: tuple[LoadSample, ...]) -> Iterator[float]:
    """The offered load in slots, one figure per sample, since it was last unknown for more than a minute."""
    figures: list[float] = []
    known_at = 0.0
    for sample, offered in zip(samples, offered_slots(samples), strict=True):
        if offered is None:
            continue
        missing = round((sample.at - known_at) / SAMPLE_S) - 1
        if figures and missing * SAMPLE_S <= _BRIDGED_S:
            figures += [figures[-1]] * missing
        else:
            figures.clear()
        figures.append(offered)
        known_at = sample.at
    yield from figures


def _present(look: Look, remembered: Setting | None, now: float) -> Setting:
    """What stands, with what is remembered beside it."""
    limits, live = look.limits, look.live
    window = limits.max_window_s if live is None or live.window_s is None else live.window_s
    if remembered is None:
        return Setting(window, limits.min_replicas if live is None else live.floor, look.replicas, now)
    # A floor that a hand has set is no hold: it would stay for as long as the load is unknown.
    return replace(remembered, window_s=window, reason="")


def _as_it_is(present: Setting, limits: Limits) -> Setting:
    window = min(max(present.window_s, limits.min_window_s), limits.max_window_s)
    floor = min(max(present.floor, limits.min_replicas), limits.max_replicas)
    return Setting(window, floor, present.replicas, present.narrowed_at, present.flatness)


def _unknown(load: ObservedLoad, series: tuple[float, ...]) -> str | None:
    """Why the load is not known; ``None`` where it is."""
    if load.unknown is None and (not load.slots_per_pod or not series):
        return "the pool's workers do not tell how many requests they can run at once; update their image"
    return load.unknown


def _tuned(
    look: Look, series: tuple[float, ...], unknown: str | None, present: Setting, now: float
) -> Setting:
    evidence = Evidence(
        load=series,
        slots_per_replica=look.load.slots_per_pod or 1.0,
        replicas=look.replicas,
        cold_start_s=look.cold_start_s,
        unknown=unknown,
        updating=look.updating,
    )
    setting = tune(evidence, present, look.limits, now)
    if len(series) * SAMPLE_S >= _REMEMBERED_S:
        return setting
    floor = min(max(setting.floor, present.floor), look.scaling.max_replicas)
    return Setting(
        setting.window_s, floor, setting.replicas, setting.narrowed_at, setting.flatness, setting.reason
    )


def _why(look: Look, series: tuple[float, ...], setting: Setting) -> str:
    """The sentence; while the window stands and for the same cause, the one that was told when it was set."""
    if not look.by_load:
        return FIXED
    told = look.told.why if look.told is not None and look.told.why != FIXED else None
    if setting.flatness is None:
        return setting.reason or told or "nothing is known of the load yet"
    before = seconds(look.told.window) if look.told is not None and look.told.window else setting.window_s
    if before == setting.window_s:
        same = told is not None and told.split(" ", 1)[0] == setting.reason.split(" ", 1)[0]
        return told if same and told is not None else setting.reason
    stage = _stage(look, series)
    change = compare(stage, before, setting.window_s) if stage else f"{before}s → {setting.window_s}s"
    return f"{setting.reason}: {change}"


def _stage(look: Look, series: tuple[float, ...]) -> Stage | None:
    slots, target = look.load.slots_per_pod, _target_slots(look, series)
    if not slots or not series or target is None or target < _LEAST_TARGET:
        return None
    scaling = look.scaling
    return Stage(
        load=series,
        slots_per_replica=slots,
        target_slots=target,
        bounds=Bounds(scaling.min_replicas, scaling.max_replicas),
        behavior=behavior_of(scaling, look.limits.max_window_s, one_by_one=True),
        cold_start_s=look.cold_start_s,
    )


def _target_slots(look: Look, series: tuple[float, ...]) -> float | None:
    """Slots that the autoscaler wants busy per worker, as far as that can be told."""
    metric, slots = look.scaling.metric, look.load.slots_per_pod
    if metric.type == MetricType.UTILIZATION and slots:
        return slots * float(metric.average) / 100
    if metric.type == MetricType.CONCURRENCY:
        return float(metric.average)
    if look.metric is None or not look.metric.usage_milli or not series or not series[-1]:
        return None
    # The same load, measured both ways.
    return series[-1] * look.metric.target_milli / look.metric.usage_milli
