"""What an autoscaler looks at, and the average per worker that it holds."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule

MAX_CPU_PERCENT: Final = 10_000
MAX_UTILIZATION_PERCENT: Final = 100


class MetricType(StrEnum):
    """What the autoscaler looks at."""

    CPU = "CPU"
    UTILIZATION = "Utilization"
    CONCURRENCY = "Concurrency"
    TOKEN_RATE = "TokenRate"  # noqa: S105 - of a language model
    PROMQL = "PromQL"


DEFAULT_TARGETS: Final = {MetricType.CPU: 80, MetricType.UTILIZATION: 70}
"""Averages, in percent, of the types that have a natural one."""


class MetricSpec(ApiModel):
    """The autoscaler's metric."""

    rules = (
        Rule(
            cel="has(self.target) || self.type == 'CPU' || self.type == 'Utilization'",
            message="spec.autoscaling.metric.target is needed with spec.autoscaling.metric.type Concurrency, "
            "TokenRate and PromQL",
            holds=lambda metric: metric.target is not None or metric.type in DEFAULT_TARGETS,
        ),
        Rule(
            cel=f"self.type != 'CPU' || !has(self.target) || self.target <= {MAX_CPU_PERCENT}",
            message="spec.autoscaling.metric.target is in percent of the CPU request with "
            f"spec.autoscaling.metric.type: CPU, at most {MAX_CPU_PERCENT}",
            holds=lambda metric: (
                metric.type != MetricType.CPU or metric.target is None or metric.target <= MAX_CPU_PERCENT
            ),
        ),
        Rule(
            cel="self.type != 'Utilization' || !has(self.target)"
            f" || self.target <= {MAX_UTILIZATION_PERCENT}",
            message="spec.autoscaling.metric.target is in percent of what a worker can do with "
            f"spec.autoscaling.metric.type: Utilization, at most {MAX_UTILIZATION_PERCENT}",
            holds=lambda metric: (
                metric.type != MetricType.UTILIZATION
                or metric.target is None
                or metric.target <= MAX_UTILIZATION_PERCENT
            ),
        ),
        Rule(
            cel="(self.type == 'PromQL') == has(self.query)",
            message="spec.autoscaling.metric.query is needed with spec.autoscaling.metric.type: PromQL, and "
            "is for that type alone",
            holds=lambda metric: (metric.type == MetricType.PROMQL) == (metric.query is not None),
        ),
    )

    type: Annotated[
        MetricType,
        Field(
            description="What the autoscaler looks at. CPU: use of the CPU request, for device: cpu only. "
            "Utilization: share of a worker's batch capacity in use. Concurrency: requests running and "
            "waiting. TokenRate: tokens generated per second. PromQL: the value of query. Every type but CPU "
            "needs somebody who serves external metrics: KEDA, or an adapter."
        ),
    ] = MetricType.CPU
    target: Annotated[
        int | None,
        Field(
            description="Average per worker that the autoscaler holds. CPU: percent of the CPU request, 80 "
            "if absent. Utilization: percent, 70 if absent. Concurrency: requests. TokenRate: tokens per "
            "second. PromQL: the unit of query, whose value is divided by the number of workers.",
            ge=1,
            le=1_000_000_000,
        ),
    ] = None
    query: Annotated[
        str | None,
        Field(
            description="PromQL expression with one value for the whole pool, not for one worker; only for "
            "type: PromQL. No value, NaN or infinity changes nothing: end it with `or vector(0)` where a "
            "series that does not exist stands for no load.",
            min_length=1,
            max_length=4096,
        ),
    ] = None

    @property
    def average(self) -> int:
        """What a worker is to carry, in the unit of the type."""
        return self.target if self.target is not None else DEFAULT_TARGETS[self.type]
