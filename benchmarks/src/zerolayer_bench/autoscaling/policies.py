"""Policies that the field uses, each as its documentation describes it."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from zerolayer_bench.autoscaling.queueing import Seen
from zerolayer_bench.autoscaling.traces import SLOTS_PER_POD, Floats
from zerolayer_operator.decide import window
from zerolayer_operator.decide.hpa_replay import (
    Behavior,
    Bounds,
    Policy,
    PolicyKind,
    Replay,
    Rules,
    per_pod_proposal,
)
from zerolayer_operator.decide.offered_load import Estimator
from zerolayer_operator.observe.load import Counted

SYNC_S = 15
TARGET = 0.7
BOUNDS = Bounds(1, 60)
LIMITS = window.Limits(BOUNDS.minimum, BOUNDS.maximum, min_window_s=60, max_window_s=300)
LIMITS_AT_FIRST = window.Setting(LIMITS.max_window_s, LIMITS.min_replicas, LIMITS.min_replicas, 0.0)
ONE_POD_DOWN = (Policy(PolicyKind.PODS, 1, SYNC_S),)
_METRIC_S, _KNOWN_S = 60, 3600
_STABLE_S, _PANIC_S, _TICK_S, _PANIC_RATIO = 60, 6, 2, 2.0


def counted(seen: Seen) -> Counted:
    """Returns what the simulated workers counted, as the operator reads it."""
    return Counted(seen.seconds, seen.arrivals, seen.busy_s, seen.queued_s, seen.finished, seen.service_s)


@dataclass(slots=True)
class Load:
    """The offered load as the autoscaler sees it: the mean of the last minute."""

    _estimator: Estimator = field(default_factory=Estimator)
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_METRIC_S // SYNC_S))

    def update(self, seen: Seen) -> float:
        """Returns the mean offered load in slots."""
        self._recent.append(self._estimator.update(counted(seen)))
        return sum(self._recent) / len(self._recent)


@dataclass(slots=True)
class FixedWindow:
    """A HorizontalPodAutoscaler on the offered load."""

    window_s: int
    target: float = TARGET
    period_s: int = SYNC_S
    _load: Load = field(default_factory=Load)
    _replay: Replay = field(default_factory=Replay)

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del ready
        behavior = Behavior(down=Rules(self.window_s, Behavior().down.policies))
        proposal = propose(self._load.update(seen), self.target, replicas, behavior)
        return self._replay.sync(now, replicas, proposal, BOUNDS, behavior)


def propose(load: float, target: float, replicas: int, behavior: Behavior) -> int:
    """Returns what an autoscaler asks for at a load in slots and a target share of a pod's slots."""
    return per_pod_proposal(round(load * 1000), round(target * SLOTS_PER_POD * 1000), replicas, behavior)


@dataclass(slots=True)
class Tuned:
    """The operator's own: a HorizontalPodAutoscaler whose window and floor follow the load."""

    cold_start_s: int
    target: float = TARGET
    parameters: window.Parameters = window.CHOSEN
    period_s: int = SYNC_S
    _load: Load = field(default_factory=Load)
    _seen: deque[float] = field(default_factory=lambda: deque(maxlen=_KNOWN_S // window.SAMPLE_S))
    _replay: Replay = field(default_factory=Replay)
    _setting: window.Setting = LIMITS_AT_FIRST

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del ready
        load = self._load.update(seen)
        self._seen.append(load)
        asked = propose(load, self.target, replicas, Behavior())
        evidence = window.Evidence(tuple(self._seen), SLOTS_PER_POD, replicas, self.cold_start_s)
        self._setting = window.tune(evidence, self._setting, LIMITS, now, self.parameters)
        behavior = Behavior(down=Rules(self._setting.window_s, ONE_POD_DOWN))
        bounds = Bounds(self._setting.floor, BOUNDS.maximum)
        return self._replay.sync(now, replicas, asked, bounds, behavior)


@dataclass(slots=True)
class Concurrency:
    """KEDA with its defaults on running plus queued requests: it makes an HPA that has no `behavior`."""

    period_s: int = SYNC_S
    _replay: Replay = field(default_factory=Replay)

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del ready
        proposal = propose(_concurrency(seen), TARGET, replicas, Behavior())
        return self._replay.sync(now, replicas, proposal, BOUNDS, None)


@dataclass(slots=True)
class KnativePodAutoscaler:
    """Knative's KPA: stable window 60 s, panic window 6 s from 200 %, looks every 2 s, at most halves."""

    period_s: int = _TICK_S
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_STABLE_S // _TICK_S))
    _panicked_at: float = -math.inf
    _panic_size: int = 0

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del replicas
        self._recent.append(_concurrency(seen))
        ready = max(1, ready)
        stable = self._wanted(list(self._recent), ready)
        panic = self._wanted(list(self._recent)[-_PANIC_S // _TICK_S :], ready)
        if panic / ready >= _PANIC_RATIO:
            self._panicked_at = now
        if now - self._panicked_at > _STABLE_S:
            self._panic_size = 0
            return _bounded(stable)
        # While it panics it never shrinks.
        self._panic_size = max(self._panic_size, panic, stable)
        return _bounded(self._panic_size)

    @staticmethod
    def _wanted(recent: Sequence[float], ready: int) -> int:
        pods = math.ceil(fmean(recent) / (TARGET * SLOTS_PER_POD))
        return min(max(pods, ready // 2), 1000 * ready)


@dataclass(slots=True)
class AdaptivePodAutoscaler:
    """AIBrix' APA, as published: beyond 10 % above or 20 % below the target, at most halved or doubled.

    It has no window; later releases also hold the highest of the last 300 s, as an HPA does.
    """

    period_s: int = SYNC_S
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_METRIC_S // SYNC_S))

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del now, ready
        self._recent.append(_concurrency(seen))
        ratio = fmean(self._recent) / (TARGET * SLOTS_PER_POD * replicas)
        if 1 - 0.2 <= ratio <= 1 + 0.1:
            return replicas
        return _bounded(min(max(math.ceil(ratio * replicas), replicas // 2), replicas * 2))


@dataclass(slots=True)
class Clairvoyant:
    """Knows the offered load of the coming cold start, and has exactly enough for it: a bound, no policy."""

    offered: Floats
    cold_start_s: int
    period_s: int = SYNC_S

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del seen, replicas, ready
        coming = self.offered[now : now + self.cold_start_s + 2 * SYNC_S]
        peak = float(coming.max()) if len(coming) else 0.0
        return _bounded(math.ceil(peak / SLOTS_PER_POD))


def _concurrency(seen: Seen) -> float:
    """Returns the mean of running plus queued requests."""
    return (seen.busy_s + seen.queued_s) / seen.seconds


def _bounded(replicas: int) -> int:
    return min(max(replicas, BOUNDS.minimum), BOUNDS.maximum)
