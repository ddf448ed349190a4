"""A pool's scaling rules as the replay of the autoscaler's algorithm takes them."""

from typing import Any, Final

from zerolayer_operator.api.quantity import quantity
from zerolayer_operator.api.scaling import AutoscalingSpec
from zerolayer_operator.decide.hpa_replay import (
    DEFAULT_TOLERANCE,
    Behavior,
    Policy,
    PolicyKind,
    Rules,
    Select,
)

ONE_BY_ONE_S: Final = 15
"""Seconds between two workers that go: how often the controller looks unless it is told otherwise.

A shorter time would let two go at one look; a longer one would hold back what the window has released.
"""


def behavior_of(scaling: AutoscalingSpec, window_s: int, *, one_by_one: bool) -> Behavior:
    """What the API server makes of the rules that the autoscaler is given.

    Args:
        scaling: What the pool's author wants.
        window_s: Delay before a scale-down, in seconds.
        one_by_one: Whether workers go one at a time.
    """
    usual = Behavior()
    down = (Policy(PolicyKind.PODS, 1, ONE_BY_ONE_S),) if one_by_one else usual.down.policies
    up = usual.up if scaling.scale_up is None else _rules(scaling.scale_up, usual.up)
    return Behavior(up, Rules(window_s, down))


def _rules(given: dict[str, Any], usual: Rules) -> Rules:
    policies = tuple(
        Policy(PolicyKind(item["type"]), item["value"], item["periodSeconds"])
        for item in given.get("policies") or ()
    )
    return Rules(
        window_s=given.get("stabilizationWindowSeconds") or 0,
        policies=policies or usual.policies,
        select=Select(given.get("selectPolicy") or Select.MAX),
        tolerance=_tolerance(given.get("tolerance")),
    )


def _tolerance(given: object) -> float:
    return DEFAULT_TOLERANCE if given is None else float(quantity(str(given)))
