"""The autoscaler and the disruption budget."""

from dataclasses import dataclass

from zerolayer_operator.api import names, queries
from zerolayer_operator.api.kinds import AUTOSCALER, DEPLOYMENT, DISRUPTION_BUDGET
from zerolayer_operator.api.metric import MetricSpec, MetricType
from zerolayer_operator.api.scaling import AutoscalingSpec, DisruptionSpec
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.decide.behavior import ONE_BY_ONE_S
from zerolayer_operator.observe.state import ObservedPool


@dataclass(frozen=True, slots=True)
class Setting:
    """What an autoscaler is given beside what its user wants.

    Attributes:
        window_s: How long the load must have been lower before workers are given up, in seconds.
        floor: Fewest workers.
        range_s: How far back rates of the workers' counters look, in seconds.
        idle_s: How long nothing must have been asked before the last worker goes, in seconds; ``None`` where
            it never does.
        one_by_one: Whether workers go one at a time, however short the window has become.
    """

    window_s: int
    floor: int
    range_s: int
    idle_s: int | None = None
    one_by_one: bool = False


def autoscaler(pool: ObservedPool, scaling: AutoscalingSpec, serving: str, setting: Setting) -> Object:
    """The HorizontalPodAutoscaler; it sizes the serving revision also while the operator is down."""
    spec = {
        "scaleTargetRef": scale_target(pool, serving),
        "minReplicas": setting.floor,
        "maxReplicas": scaling.max_replicas,
        "metrics": [_metric(pool, scaling.metric, serving)],
        "behavior": behavior(scaling, setting),
    }
    annotations: dict[str, str] = {}
    if scaling.metric.type != MetricType.CPU:
        labels = queries.workers(pool.namespace, pool.name, serving)
        annotations[names.ANNOTATION_QUERY] = queries.query(scaling.metric, labels, setting.range_s)
    return child(pool, AUTOSCALER, pool.name, {"spec": spec}, annotations=annotations)


def scale_target(pool: ObservedPool, serving: str) -> Object:
    """The Deployment that is sized."""
    name = names.deployment_name(pool.name, serving)
    return {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.kind, "name": name}


def behavior(scaling: AutoscalingSpec, setting: Setting) -> Object:
    """How soon and how fast the pool grows and shrinks."""
    down: Object = {"stabilizationWindowSeconds": setting.window_s}
    if setting.one_by_one:
        down["policies"] = [{"type": "Pods", "value": 1, "periodSeconds": ONE_BY_ONE_S}]
    made: Object = {"scaleDown": down}
    if scaling.scale_up is not None:
        made["scaleUp"] = scaling.scale_up
    return made


def _metric(pool: ObservedPool, metric: MetricSpec, serving: str) -> Object:
    """What the autoscaler looks at.

    CPU is that of the worker's container alone: a sidecar that somebody injects must not stop it. All else is
    an external metric with one value for all workers together, divided by their number: a worker that is
    pending or warms up has no part in it, so it can't be taken for capacity.
    """
    if metric.type == MetricType.CPU:
        target: Object = {"type": "Utilization", "averageUtilization": metric.average}
        resource = {"name": "cpu", "container": names.WORKER_NAME, "target": target}
        return {"type": "ContainerResource", "containerResource": resource}
    named = {
        "name": queries.EXTERNAL_NAMES[metric.type],
        "selector": {"matchLabels": queries.workers_within(pool.name, serving)},
    }
    target = {"type": "AverageValue", "averageValue": str(metric.average)}
    return {"type": "External", "external": {"metric": named, "target": target}}


def disruption_budget(pool: ObservedPool, disruption: DisruptionSpec, serving: str) -> Object:
    """Guards the serving workers against evictions; ones that aren't ready may always go."""
    spec = {
        "maxUnavailable": disruption.max_unavailable,
        "selector": {"matchLabels": names.revision_selector(pool.name, serving)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return child(pool, DISRUPTION_BUDGET, pool.name, {"spec": spec})
