"""The autoscaler and the disruption budget."""

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import AUTOSCALER, DEPLOYMENT, DISRUPTION_BUDGET
from zerolayer_operator.api.scaling import AutoscalingSpec, DisruptionSpec
from zerolayer_operator.api.types import seconds
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.observe.state import ObservedPool


def autoscaler(pool: ObservedPool, scaling: AutoscalingSpec, serving: str) -> Object:
    """The HorizontalPodAutoscaler; it sizes the serving revision also while the operator is down.

    It looks at the worker's container alone: a sidecar that somebody injects must not stop it.
    """
    behavior: Object = {"scaleDown": {"stabilizationWindowSeconds": seconds(scaling.scale_down.fixed_window)}}
    if scaling.scale_up is not None:
        behavior["scaleUp"] = scaling.scale_up
    spec = {
        "scaleTargetRef": {
            "apiVersion": DEPLOYMENT.api_version,
            "kind": DEPLOYMENT.kind,
            "name": names.deployment_name(pool.name, serving),
        },
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": names.WORKER_NAME,
                    "target": {"type": "Utilization", "averageUtilization": scaling.metric.target},
                },
            }
        ],
        "behavior": behavior,
    }
    return child(pool, AUTOSCALER, pool.name, {"spec": spec})


def disruption_budget(pool: ObservedPool, disruption: DisruptionSpec, serving: str) -> Object:
    """Guards the serving workers against evictions; ones that aren't ready may always go."""
    spec = {
        "maxUnavailable": disruption.max_unavailable,
        "selector": {"matchLabels": names.revision_selector(pool.name, serving)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return child(pool, DISRUPTION_BUDGET, pool.name, {"spec": spec})
