"""Policies that the field uses, each as its documentation describes it."""

import math
from collections import deque
from dataclasses import dataclass, field

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
_METRIC_S = 60


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
    _seen: deque[float] = field(default_factory=lambda: deque(maxlen=window.MEMORY_S // window.SAMPLE_S))
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
    """KEDA with its defaults on running plus queued requests: an HPA with the API's default behavior."""

    period_s: int = SYNC_S
    _replay: Replay = field(default_factory=Replay)

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del ready
        waiting_and_running = (seen.busy_s + seen.queued_s) / seen.seconds
        proposal = propose(waiting_and_running, TARGET, replicas, Behavior())
        return self._replay.sync(now, replicas, proposal, BOUNDS, Behavior())


@dataclass(slots=True)
class KnativePodAutoscaler:
    """Knative's KPA: stable window 60 s, panic window 6 s from 200 %, at most halved per tick of 2 s."""

    period_s: int = 2
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=30))
    _panic_until: float = -math.inf
    _panic_size: int = 0

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        self._recent.append((seen.busy_s + seen.queued_s) / seen.seconds)
        ready = max(1, ready)
        per_pod = TARGET * SLOTS_PER_POD
        least, most = math.floor(ready / 2), math.ceil(1000 * ready)
        stable, panic = (
            min(max(math.ceil(sum(values) / len(values) / per_pod), least), most)
            for values in (list(self._recent), list(self._recent)[-3:])
        )
        if panic / ready >= 2:
            self._panic_until = now + 60
        if now >= self._panic_until:
            self._panic_size = 0
            return _bounded(stable)
        # While it panics it never shrinks.
        self._panic_size = max(self._panic_size, panic, replicas)
        return _bounded(self._panic_size)


@dataclass(slots=True)
class AdaptivePodAutoscaler:
    """AIBrix' APA: tolerances of 10 % up and 20 % down around the target, no window, at most doubled."""

    period_s: int = SYNC_S
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_METRIC_S // SYNC_S))

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """See `Policy`."""
        del now, ready
        self._recent.append((seen.busy_s + seen.queued_s) / seen.seconds)
        use = sum(self._recent) / len(self._recent)
        ratio = use / (TARGET * SLOTS_PER_POD * replicas)
        if 1 - 0.2 <= ratio <= 1 + 0.1:
            return replicas
        return _bounded(min(max(math.ceil(ratio * replicas), math.floor(replicas / 2)), replicas * 2))


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


def _bounded(replicas: int) -> int:
    return min(max(replicas, BOUNDS.minimum), BOUNDS.maximum)
