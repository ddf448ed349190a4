"""How a pool's autoscaler is set, whose it is, and what keeps it from working."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from zerolayer_operator.api.kinds import AUTOSCALER, EXTERNAL_METRICS, SCALED_OBJECT, TRIGGER_AUTHENTICATION
from zerolayer_operator.api.metric import MetricType
from zerolayer_operator.api.queries import EXTERNAL_NAMES
from zerolayer_operator.api.scaling import AutoscalingSpec, Provider, ScaleDownMode
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.observe.access import conditions, timestamp
from zerolayer_operator.observe.autoscaler import keda_autoscaler_name
from zerolayer_operator.observe.prometheus_address import allowed_address
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Problem

PATIENCE: Final = timedelta(minutes=2)
"""How long one autoscaler may take to give way to another before that is told."""

_KINDS: Final = frozenset({AUTOSCALER.kind, SCALED_OBJECT.kind, TRIGGER_AUTHENTICATION.kind})


@dataclass(frozen=True, slots=True)
class PlannedScaling:
    """What the autoscaler is to do.

    Attributes:
        window_s: How long the load must have been lower before workers are given up, in seconds.
        floor: Fewest workers.
        kinds: Kinds of the objects that stand for it, each under the pool's name.
        one_by_one: Whether workers go one at a time, however short the window has become.
        address: The Prometheus that KEDA asks; ``None`` where it asks none.
        idle_s: How long nothing must have been asked before the last worker goes, in seconds; ``None`` where
            it never does.
        may_sleep: Whether having no worker is KEDA's doing: without KEDA nothing would start one again.
        blocked: Whether it can't be made, so that whatever is there goes on.
        problem: What keeps it from working, where something does.
    """

    window_s: int
    floor: int
    kinds: frozenset[str]
    one_by_one: bool = False
    address: str | None = None
    idle_s: int | None = None
    may_sleep: bool = False
    blocked: bool = False
    problem: Problem | None = None


def planned_scaling(pool: ObservedPool, spec: PoolSpec, defaults: Defaults) -> PlannedScaling | None:
    """The autoscaler's setting for a pool; ``None`` for one of a fixed size."""
    scaling = spec.autoscaling
    if scaling is None:
        return None
    down, floor = scaling.scale_down, scaling.min_replicas
    by_flatness = down.mode == ScaleDownMode.FLATNESS
    window_s = down.longest_s if by_flatness else down.fixed_s
    if scaling.provider == Provider.HPA:
        kinds = frozenset({AUTOSCALER.kind})
        problem = _external_metrics_missing(pool, scaling.metric.type) or _prometheus_refused(
            scaling, defaults
        )
        return PlannedScaling(window_s, floor, kinds, one_by_one=by_flatness, problem=problem)
    named = scaling.credentials_for_keda is not None
    kinds = {SCALED_OBJECT.kind} | ({TRIGGER_AUTHENTICATION.kind} if named else set[str]())
    found = _prometheus_for_keda(pool, scaling, defaults)
    problem = found if isinstance(found, Problem) else None
    # Where it is switched off for the operator, KEDA may still go on with what it has.
    lives = ChildKey(SCALED_OBJECT.kind, pool.name) in pool.children or not defaults.keda
    return PlannedScaling(
        window_s,
        floor,
        frozenset(kinds),
        address=found if isinstance(found, str) else None,
        one_by_one=by_flatness,
        idle_s=window_s if scaling.scale_to_zero else None,
        may_sleep=scaling.scale_to_zero and lives,
        blocked=problem is not None,
        problem=problem,
    )


def may_apply(pool: ObservedPool, planned: PlannedScaling) -> bool:
    """Whether the autoscaler may be made now.

    There is never more than one: two of them would hold each other still. Where the provider changes, the
    other one's object has to be gone first, and what KEDA made of a ScaledObject goes after that; meanwhile
    the pool keeps its size.
    """
    others = {AUTOSCALER.kind, SCALED_OBJECT.kind} - planned.kinds
    if planned.blocked or any(ChildKey(kind, pool.name) in pool.children for kind in others):
        return False
    lingers = ChildKey(AUTOSCALER.kind, keda_autoscaler_name(pool.name)) in pool.foreign
    return SCALED_OBJECT.kind in planned.kinds or not lingers


def unwanted_autoscalers(pool: ObservedPool, planned: PlannedScaling | None) -> Iterator[ChildKey]:
    """What nothing asks for any more, and copies: they would size what another one sizes."""
    for key in pool.children:
        wanted = (
            planned is not None and key.name == pool.name and (planned.blocked or key.kind in planned.kinds)
        )
        if key.kind in _KINDS and not wanted:
            yield key


def autoscaling_problems(
    pool: ObservedPool, planned: PlannedScaling | None, now: datetime
) -> Iterator[Problem]:
    """What keeps a pool from being sized as its spec asks."""
    if planned is not None and planned.problem is not None:
        yield planned.problem
    scaled = pool.children.get(ChildKey(SCALED_OBJECT.kind, pool.name), {}).get("metadata", {})
    if _is_over(timestamp(scaled.get("deletionTimestamp")), now):
        yield Problem(
            "ScaledObjectHeld",
            f"ScaledObject {pool.name} is deleted, but KEDA, whose finalizer it bears, does not let it go; "
            "start KEDA again or, if it is gone for good, take the finalizer away: `kubectl patch "
            f'scaledobject {pool.name} --type=merge --patch=\'{{"metadata":{{"finalizers":null}}}}\'`',
        )
    hpa = pool.children.get(ChildKey(AUTOSCALER.kind, pool.name), {})
    active = conditions(hpa).get("ScalingActive", {})
    ambiguous = active.get("reason") == "AmbiguousSelector"
    if ambiguous and _is_over(timestamp(active.get("lastTransitionTime")), now):
        yield Problem(
            "AnotherAutoscaler",
            f"HorizontalPodAutoscaler {pool.name} is not the only one that sizes the pool, so that none of "
            "them does; delete the other one: `kubectl get horizontalpodautoscalers` shows it, and one whose "
            "name begins with keda-hpa- goes with its ScaledObject",
        )


def _is_over(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since > PATIENCE


def _prometheus_for_keda(
    pool: ObservedPool, scaling: AutoscalingSpec, defaults: Defaults
) -> str | Problem | None:
    """The address that KEDA is given, none for CPU use, or why there can be no ScaledObject."""
    if not defaults.keda:
        return Problem(
            "KedaNotEnabled",
            "spec.autoscaling.provider KEDA is not switched on in this cluster's operator; have its chart "
            "installed with keda.enabled=true, or set spec.autoscaling.provider: HPA",
        )
    if not pool.scalable_by_keda:
        return Problem(
            "KedaMissing",
            f"spec.autoscaling.provider KEDA needs KEDA, and this cluster does not define its ScaledObjects "
            f"({SCALED_OBJECT.api_version}); install KEDA, or set spec.autoscaling.provider: HPA",
        )
    if scaling.metric.type == MetricType.CPU:
        return None
    return allowed_address(scaling.prometheus, defaults.prometheus_addresses)


def _prometheus_refused(scaling: AutoscalingSpec, defaults: Defaults) -> Problem | None:
    """Why the Prometheus that a pool names is not asked; a pool that names none need not have one."""
    if scaling.prometheus is None:
        return None
    found = allowed_address(scaling.prometheus, defaults.prometheus_addresses)
    return found if isinstance(found, Problem) else None


def _external_metrics_missing(pool: ObservedPool, metric: MetricType) -> Problem | None:
    if metric == MetricType.CPU or pool.external_metrics:
        return None
    return Problem(
        "ExternalMetricsMissing",
        f"spec.autoscaling.metric.type {metric} needs an API that this cluster lacks, {EXTERNAL_METRICS}, so "
        "the pool keeps its size; set spec.autoscaling.provider: KEDA where KEDA is installed, or have an "
        f"adapter serve {EXTERNAL_NAMES[metric]}, as docs/autoscaling.md shows",
    )
