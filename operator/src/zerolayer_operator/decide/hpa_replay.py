"""The HorizontalPodAutoscaler's algorithm, so that a decision can try out what a setting would do.

It follows kube-controller-manager 1.36 (`pkg/controller/podautoscaler/horizontal.go`) to the letter, also
where that surprises: a size outside of the bounds is put right without a look at metrics or windows, a
recommendation that has left both windows is overwritten in place, so that widening a window does not bring
back all that was recommended within it, and an autoscaler without `spec.behavior` has rules of its own.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_TOLERANCE = 0.1
DEFAULT_WINDOW_S = 300
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_INT64_MAX = 2**63 - 1


class PolicyKind(StrEnum):
    """What a scaling policy's value counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class Select(StrEnum):
    """Which of several policies holds."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `value` pods, or per cent of the pods, per `period_s` seconds."""

    kind: PolicyKind
    value: int
    period_s: int


@dataclass(frozen=True, slots=True)
class Rules:
    """How far and how soon one direction may go.

    Attributes:
        window_s: stabilisation window in seconds.
        policies: what a change is limited to.
        select: which policy holds where there are several.
        tolerance: relative distance from the target that changes nothing.
    """

    window_s: int
    policies: tuple[Policy, ...]
    select: Select = Select.MAX
    tolerance: float = DEFAULT_TOLERANCE


@dataclass(frozen=True, slots=True)
class Behavior:
    """`spec.behavior`, with the defaults that the API server fills in."""

    up: Rules = Rules(0, (Policy(PolicyKind.PODS, 4, 15), Policy(PolicyKind.PERCENT, 100, 15)))
    down: Rules = Rules(DEFAULT_WINDOW_S, (Policy(PolicyKind.PERCENT, 100, 15),))


@dataclass(frozen=True, slots=True)
class Bounds:
    """`minReplicas` and `maxReplicas`."""

    minimum: int
    maximum: int


def per_pod_proposal(
    usage_milli: int, target_milli: int, replicas: int, behavior: Behavior | None = None
) -> int:
    """Returns what an external metric with an average value asks for.

    Args:
        usage_milli: the metric's sum over the pool, in thousandths. The controller takes a negative one for
            an overflow, and so asks for all there can be.
        target_milli: what one pod is to take of it, in thousandths.
        replicas: the target's `status.replicas`.
        behavior: whose tolerances decide what is too small a change; None as for `Replay.sync`.
    """
    usage = float(usage_milli if 0 <= usage_milli <= _INT64_MAX else _INT64_MAX)
    target = float(target_milli)
    # Without a pod the ratio is infinite, or 0/0, and neither is within any tolerance.
    if replicas and _within(usage / (target * replicas), behavior or Behavior()):
        return replicas
    return min(math.ceil(usage / target), _INT32_MAX)


def _within(ratio: float, behavior: Behavior) -> bool:
    return 1.0 - behavior.down.tolerance <= ratio <= 1.0 + behavior.up.tolerance


@dataclass(slots=True)
class _Sample:
    """A number with its time in seconds: a recommendation, or how many pods a change was about.

    `outdated`, once found, stays: a change may give its place away although a policy's period was raised
    since and would count it again.
    """

    value: int
    at: float
    outdated: bool = False


@dataclass(slots=True)
class Replay:
    """One HorizontalPodAutoscaler's memory: what it recommended and what it changed.

    A new one is what the controller has after its own restart.

    Attributes:
        window_s: stabilisation window of an autoscaler without `spec.behavior`, in seconds: the controller's
            `--horizontal-pod-autoscaler-downscale-stabilization`.
    """

    window_s: int = DEFAULT_WINDOW_S

    _recommendations: list[_Sample] = field(default_factory=list[_Sample])
    _added: list[_Sample] = field(default_factory=list[_Sample])
    _removed: list[_Sample] = field(default_factory=list[_Sample])

    def sync(
        self,
        now: float,
        replicas: int,
        proposal: int | None,
        bounds: Bounds,
        behavior: Behavior | None,
    ) -> int:
        """Returns the size after one sync, and remembers what the next ones depend on: that it was set.

        Args:
            now: seconds on any clock that only goes forward.
            replicas: the target's `spec.replicas`.
            proposal: what the metric asks for at this size; None where it can't be had.
            bounds: the autoscaler's bounds now.
            behavior: the autoscaler's behavior now; None where its spec has none at all.
        """
        if not self._recommendations:
            self._recommendations.append(_Sample(replicas, now))
        desired = self._desired(now, replicas, proposal, bounds, behavior)
        if behavior is not None and desired > replicas:
            _store(self._added, _Sample(desired - replicas, now), behavior.up)
        elif behavior is not None and desired < replicas:
            _store(self._removed, _Sample(replicas - desired, now), behavior.down)
        return desired

    def _desired(
        self, now: float, replicas: int, proposal: int | None, bounds: Bounds, behavior: Behavior | None
    ) -> int:
        if replicas == 0:
            return 0  # somebody scaled the target to zero by hand: autoscaling is off
        if replicas > bounds.maximum:
            return bounds.maximum
        if replicas < bounds.minimum:
            return bounds.minimum
        if proposal is None:
            return replicas
        if behavior is None:
            return self._without_behavior(now, replicas, proposal, bounds)
        return self._limited(
            now, replicas, self._stabilized(now, replicas, proposal, behavior), bounds, behavior
        )

    def _without_behavior(self, now: float, replicas: int, proposal: int, bounds: Bounds) -> int:
        cutoff = now - self.window_s
        greatest = max([proposal, *(past.value for past in self._recommendations if past.at >= cutoff)])
        self._recommend(proposal, now, cutoff)
        return max(bounds.minimum, min(greatest, bounds.maximum, max(2 * replicas, 4)))

    def _stabilized(self, now: float, replicas: int, proposal: int, behavior: Behavior) -> int:
        """Brings the present size between the least and the greatest of what was recommended lately."""
        up_cutoff, down_cutoff = now - behavior.up.window_s, now - behavior.down.window_s
        least = min([proposal, *(past.value for past in self._recommendations if past.at > up_cutoff)])
        greatest = max([proposal, *(past.value for past in self._recommendations if past.at > down_cutoff)])
        self._recommend(proposal, now, min(up_cutoff, down_cutoff))
        return min(max(replicas, least), greatest)

    def _recommend(self, proposal: int, now: float, cutoff: float) -> None:
        """Remembers a recommendation, in the place of the last one from before the cutoff if there is one."""
        outdated = [position for position, past in enumerate(self._recommendations) if past.at < cutoff]
        _put(self._recommendations, _Sample(proposal, now), outdated)

    def _limited(self, now: float, replicas: int, wanted: int, bounds: Bounds, behavior: Behavior) -> int:
        if wanted > replicas:
            limit = self._limit(now, replicas, behavior.up, up=True)
            return min(wanted, bounds.maximum, max(limit, replicas))
        if wanted < replicas:
            limit = self._limit(now, replicas, behavior.down, up=False)
            return max(wanted, bounds.minimum, min(limit, replicas))
        return wanted

    def _limit(self, now: float, replicas: int, rules: Rules, *, up: bool) -> int:
        """Returns the size that the policies let one direction reach."""
        if rules.select is Select.DISABLED:
            return replicas
        farthest: Callable[[list[int]], int] = max if up == (rules.select is Select.MAX) else min
        return farthest([self._policy_limit(now, replicas, policy, up=up) for policy in rules.policies])

    def _policy_limit(self, now: float, replicas: int, policy: Policy, *, up: bool) -> int:
        since = now - policy.period_s
        at_start = replicas - _sum_since(self._added, since) + _sum_since(self._removed, since)
        if policy.kind is PolicyKind.PODS:
            return _wrapped(at_start + (policy.value if up else -policy.value))
        share = policy.value / 100
        # The controller rounds growth up, so that it never sticks, and cuts what stays after shrinking.
        return _converted(math.ceil(at_start * (1 + share)) if up else int(at_start * (1 - share)))


def _wrapped(number: int) -> int:
    """Returns what the controller's 32-bit arithmetic makes of a sum: a huge policy allows nothing."""
    return (number - _INT32_MIN) % 2**32 + _INT32_MIN


def _converted(number: int) -> int:
    """Returns what x86-64 makes of a floating-point number as a 32-bit integer."""
    return number if _INT32_MIN <= number <= _INT32_MAX else _INT32_MIN


def _sum_since(changes: list[_Sample], since: float) -> int:
    return sum(change.value for change in changes if change.at > since)


def _store(changes: list[_Sample], change: _Sample, rules: Rules) -> None:
    """Remembers a change in the place of one that no policy counted any more, at that time or before."""
    cutoff = change.at - max(policy.period_s for policy in rules.policies)
    for past in changes:
        past.outdated = past.outdated or past.at < cutoff
    _put(changes, change, [position for position, past in enumerate(changes) if past.outdated])


def _put(samples: list[_Sample], sample: _Sample, outdated: list[int]) -> None:
    if outdated:
        samples[outdated[-1]] = sample
    else:
        samples.append(sample)
