"""How large a pool is."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.metric import MetricSpec, MetricType
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.api.types import Duration, ScalingRules, seconds

MAX_WINDOW_SECONDS = 3600


class Provider(StrEnum):
    """Whose autoscaler sizes the pool."""

    HPA = "HPA"
    KEDA = "KEDA"


class ScaleDownMode(StrEnum):
    """How the delay before a scale-down is chosen."""

    FIXED = "Fixed"


class ScaleDownSpec(ApiModel):
    """When replicas are given up."""

    rules = (
        Rule(
            cel="duration(self.fixedWindow) <= duration('1h')",
            message="spec.autoscaling.scaleDown.fixedWindow must be at most 1h",
            holds=lambda down: seconds(down.fixed_window) <= MAX_WINDOW_SECONDS,
        ),
    )

    mode: Annotated[
        ScaleDownMode,
        Field(description="Fixed: the delay before a scale-down is always fixedWindow."),
    ] = ScaleDownMode.FIXED
    fixed_window: Annotated[
        Duration,
        Field(
            description="How long the load must have been lower before replicas are given up, as a Go "
            "duration in whole seconds, at most 1h: 300s, 5m.",
        ),
    ] = "300s"


def _uses_prometheus(scaling: "AutoscalingSpec") -> bool:
    return scaling.provider == Provider.KEDA and scaling.metric.type != MetricType.CPU


def _keda_heeds_tls(scaling: "AutoscalingSpec") -> bool:
    prometheus = scaling.prometheus
    if scaling.provider != Provider.KEDA or prometheus is None or prometheus.tls is None:
        return True
    return prometheus.bearer_token_secret_ref is not None or prometheus.tls.certificate_secret_ref is not None


class AutoscalingSpec(ApiModel):
    """Bounds and behaviour of the pool's autoscaler."""

    rules = (
        Rule(
            cel="self.minReplicas <= self.maxReplicas",
            message="spec.autoscaling.minReplicas must not exceed spec.autoscaling.maxReplicas",
            holds=lambda scaling: scaling.min_replicas <= scaling.max_replicas,
        ),
        Rule(
            cel="!self.scaleToZero || (self.provider == 'KEDA' && self.metric.type == 'PromQL')",
            message="spec.autoscaling.scaleToZero needs spec.autoscaling.provider: KEDA and "
            "spec.autoscaling.metric.type: PromQL, with a query that has a value while there is no worker",
            holds=lambda scaling: (
                not scaling.scale_to_zero
                or (scaling.provider == Provider.KEDA and scaling.metric.type == MetricType.PROMQL)
            ),
        ),
        Rule(
            cel="!has(self.prometheus) || (self.provider == 'KEDA' && self.metric.type != 'CPU')",
            message="spec.autoscaling.prometheus is for spec.autoscaling.provider: KEDA with another "
            "spec.autoscaling.metric.type than CPU",
            holds=lambda scaling: scaling.prometheus is None or _uses_prometheus(scaling),
        ),
        Rule(
            cel="self.provider != 'KEDA' || !has(self.prometheus) || !has(self.prometheus.tls)"
            " || has(self.prometheus.bearerTokenSecretRef) || has(self.prometheus.tls.certificateSecretRef)",
            message="spec.autoscaling.prometheus.tls.caSecretRef alone is not heeded by KEDA; name "
            "bearerTokenSecretRef or tls.certificateSecretRef too, or have KEDA itself trust the authority",
            holds=_keda_heeds_tls,
        ),
    )

    min_replicas: Annotated[
        int,
        Field(description="Fewest workers, also when nothing is asked of the pool.", ge=1, le=1000),
    ] = 1
    max_replicas: Annotated[
        int,
        Field(description="Most workers, whatever the load.", ge=1, le=1000),
    ]
    provider: Annotated[
        Provider,
        Field(
            description="Whose autoscaler sizes the pool. HPA: a HorizontalPodAutoscaler of the pool's own. "
            "KEDA: a ScaledObject, which needs KEDA in the cluster and keda.enabled in the operator's chart."
        ),
    ] = Provider.HPA
    metric: Annotated[
        MetricSpec,
        Field(description="What the autoscaler looks at, and the average per worker that it holds."),
    ] = MetricSpec()
    scale_down: Annotated[
        ScaleDownSpec,
        Field(description="When replicas are given up."),
    ] = ScaleDownSpec()
    scale_up: Annotated[
        ScalingRules | None,
        Field(description="How fast the pool grows, handed to the HorizontalPodAutoscaler as it is."),
    ] = None
    scale_to_zero: Annotated[
        bool,
        Field(
            description="Whether the pool has no worker at all while metric.query has been 0 for as long as "
            "scaleDown says. Requests fail until one has started again. Only for provider: KEDA with "
            "metric.type: PromQL: workers' own figures end with the last one."
        ),
    ] = False
    prometheus: Annotated[
        PrometheusSpec | None,
        Field(description="Prometheus that KEDA asks for the metric; for every metric.type but CPU."),
    ] = None


class DisruptionSpec(ApiModel):
    """What voluntary disruptions may take."""

    max_unavailable: Annotated[
        int,
        Field(
            description="How many serving workers node drains and other evictions may take at the same time; "
            "0 lets none go.",
            ge=0,
            le=1000,
        ),
    ] = 1
