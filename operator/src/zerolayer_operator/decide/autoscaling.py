"""How a pool's autoscaler is set, and what keeps it from working."""

from dataclasses import dataclass

from zerolayer_operator.api.kinds import EXTERNAL_METRICS
from zerolayer_operator.api.metric import MetricType
from zerolayer_operator.api.queries import EXTERNAL_NAMES
from zerolayer_operator.api.scaling import AutoscalingSpec
from zerolayer_operator.api.types import seconds
from zerolayer_operator.observe.state import ObservedPool, Problem


@dataclass(frozen=True, slots=True)
class PlannedScaling:
    """What the autoscaler is to do.

    Attributes:
        window_s: How long the load must have been lower before workers are given up, in seconds.
        floor: Fewest workers.
        problem: What keeps it from working, where something does.
    """

    window_s: int
    floor: int
    problem: Problem | None = None


def planned_scaling(pool: ObservedPool, scaling: AutoscalingSpec) -> PlannedScaling:
    """The autoscaler's setting for a pool."""
    return PlannedScaling(
        window_s=seconds(scaling.scale_down.fixed_window),
        floor=scaling.min_replicas,
        problem=_problem(pool, scaling.metric.type),
    )


def _problem(pool: ObservedPool, metric: MetricType) -> Problem | None:
    if metric == MetricType.CPU or pool.external_metrics:
        return None
    return Problem(
        "ExternalMetricsMissing",
        f"spec.autoscaling.metric.type {metric} needs an API that this cluster lacks, {EXTERNAL_METRICS}, so "
        f"the pool keeps its size; have an adapter serve {EXTERNAL_NAMES[metric]}, as docs/autoscaling.md "
        "shows, or autoscale by CPU where spec.worker.device is cpu",
    )
