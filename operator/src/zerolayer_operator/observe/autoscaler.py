"""How a pool's autoscaler is set, and what it was fed last; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from zerolayer_operator.api.kinds import AUTOSCALER, SCALED_OBJECT
from zerolayer_operator.api.quantity import quantity
from zerolayer_operator.observe.access import conditions, items, section
from zerolayer_operator.observe.state import ChildKey, Object, ObservedPool


@dataclass(frozen=True, slots=True)
class Metric:
    """What the autoscaler is fed: the pool's sum, and what one replica is to take of it, in thousandths."""

    usage_milli: int
    target_milli: int


@dataclass(frozen=True, slots=True)
class AutoscalerSetting:
    """What the operator sets of an autoscaler while the load changes.

    Attributes:
        window_s: Delay before a scale-down, in seconds; ``None`` where it is not set.
        floor: Fewest workers.
    """

    window_s: int | None
    floor: int


def live_setting(pool: ObservedPool) -> AutoscalerSetting | None:
    """How the pool's autoscaler is set now; ``None`` where there is none."""
    hpa = pool.children.get(ChildKey(AUTOSCALER.kind, pool.name))
    if hpa is not None:
        spec = section(hpa, "spec")
        return _setting(section(spec, "behavior"), spec.get("minReplicas"))
    scaled = pool.children.get(ChildKey(SCALED_OBJECT.kind, pool.name))
    if scaled is not None:
        spec = section(scaled, "spec")
        behavior = section(spec, "advanced", "horizontalPodAutoscalerConfig", "behavior")
        return _setting(behavior, spec.get("minReplicaCount"))
    return None


def _setting(behavior: Object, floor: object) -> AutoscalerSetting:
    window = section(behavior, "scaleDown").get("stabilizationWindowSeconds")
    return AutoscalerSetting(
        window if isinstance(window, int) else None, floor if isinstance(floor, int) else 0
    )


def keda_autoscaler_name(scaled_object: str) -> str:
    """Name that KEDA gives to the HorizontalPodAutoscaler that it makes of a ScaledObject."""
    return f"keda-hpa-{scaled_object}"


def keda_autoscaler(pool_name: str, children: Mapping[ChildKey, Object]) -> str | None:
    """Name of the HorizontalPodAutoscaler that KEDA makes of the pool's ScaledObject, where there is one."""
    scaled = children.get(ChildKey(SCALED_OBJECT.kind, pool_name))
    if scaled is None:
        return None
    return str(section(scaled, "status").get("hpaName") or keda_autoscaler_name(pool_name))


def last_metric(hpa: Object) -> Metric | None:
    """What the autoscaler was fed at its last look; ``None`` where it could not be fed."""
    status = section(hpa, "status")
    replicas, found = status.get("currentReplicas"), items(hpa, "status", "currentMetrics")
    wanted = items(hpa, "spec", "metrics")
    if conditions(hpa).get("ScalingActive", {}).get("status") != "True" or not replicas:
        return None
    if len(found) != 1 or len(wanted) != 1:
        return None
    try:
        return _metric(found[0], wanted[0], int(replicas))
    except (ArithmeticError, ValueError, TypeError):
        return None


def _metric(found: Object, wanted: Object, replicas: int) -> Metric | None:
    for part in ("containerResource", "resource"):
        now = section(found, part, "current").get("averageUtilization")
        target = section(wanted, part, "target").get("averageUtilization")
        if now is not None and target:
            return Metric(int(now) * replicas * 1000, int(target) * 1000)
    now = section(found, "external", "current").get("averageValue")
    target = section(wanted, "external", "target").get("averageValue")
    if now is None or target is None:
        return None
    usage, share = quantity(str(now)) * replicas * 1000, quantity(str(target)) * 1000
    return Metric(int(usage), int(share)) if share >= Decimal(1) else None
