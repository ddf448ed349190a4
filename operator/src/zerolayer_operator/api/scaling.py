"""How large a pool is."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.metric import MetricSpec, MetricType
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.api.types import Duration, ScalingRules, ShortDuration, exact_seconds, seconds

MAX_WINDOW_SECONDS = 3600
MIN_FIRST_TOKEN_SECONDS = 0.005
MAX_FIRST_TOKEN_SECONDS = 300


class Provider(StrEnum):
    """Whose autoscaler sizes the pool."""

    HPA = "HPA"
    KEDA = "KEDA"


class ScaleDownMode(StrEnum):
    """How the delay before a scale-down is chosen."""

    FLATNESS = "Flatness"
    FIXED = "Fixed"


class ScaleDownSpec(ApiModel):
    """When replicas are given up."""

    rules = (
        Rule(
            cel="!has(self.fixedWindow) || self.mode == 'Fixed'",
            message="spec.autoscaling.scaleDown.fixedWindow needs spec.autoscaling.scaleDown.mode: Fixed",
            holds=lambda down: down.fixed_window is None or down.mode == ScaleDownMode.FIXED,
        ),
        Rule(
            cel="self.mode == 'Flatness' || !has(self.minWindow) && !has(self.maxWindow)",
            message="spec.autoscaling.scaleDown.minWindow and maxWindow are for "
            "spec.autoscaling.scaleDown.mode: Flatness; with mode: Fixed set fixedWindow",
            holds=lambda down: (
                down.mode == ScaleDownMode.FLATNESS or (down.min_window is None and down.max_window is None)
            ),
        ),
        Rule(
            cel="duration(has(self.minWindow) ? self.minWindow : '60s')"
            " <= duration(has(self.maxWindow) ? self.maxWindow : '300s')",
            message="spec.autoscaling.scaleDown.minWindow must not exceed "
            "spec.autoscaling.scaleDown.maxWindow, which is 300s if absent",
            holds=lambda down: down.shortest_s <= down.longest_s,
        ),
        Rule(
            cel="!has(self.maxWindow) || duration(self.maxWindow) <= duration('1h')",
            message="spec.autoscaling.scaleDown.maxWindow must be at most 1h",
            holds=lambda down: down.longest_s <= MAX_WINDOW_SECONDS,
        ),
        Rule(
            cel="!has(self.fixedWindow) || duration(self.fixedWindow) <= duration('1h')",
            message="spec.autoscaling.scaleDown.fixedWindow must be at most 1h",
            holds=lambda down: down.fixed_s <= MAX_WINDOW_SECONDS,
        ),
    )

    mode: Annotated[
        ScaleDownMode,
        Field(
            description="How the delay before a scale-down is chosen. Flatness: between minWindow and "
            "maxWindow, the shorter the flatter the load has been, and one worker at a time. Fixed: always "
            "fixedWindow."
        ),
    ] = ScaleDownMode.FLATNESS
    min_window: Annotated[
        Duration | None,
        Field(
            description="Shortest delay with mode: Flatness, as a Go duration in whole seconds: 60s, 1m. 60s "
            "if absent."
        ),
    ] = None
    max_window: Annotated[
        Duration | None,
        Field(
            description="Longest delay with mode: Flatness, as a Go duration in whole seconds, at most 1h; "
            "it holds whenever the load is not known. 300s if absent.",
        ),
    ] = None
    fixed_window: Annotated[
        Duration | None,
        Field(
            description="How long the load must have been lower before replicas are given up with mode: "
            "Fixed, as a Go duration in whole seconds, at most 1h: 300s, 5m. 300s if absent.",
        ),
    ] = None

    @property
    def shortest_s(self) -> int:
        """Shortest delay with mode Flatness, in seconds."""
        return 60 if self.min_window is None else seconds(self.min_window)

    @property
    def longest_s(self) -> int:
        """Longest delay with mode Flatness, in seconds."""
        return 300 if self.max_window is None else seconds(self.max_window)

    @property
    def fixed_s(self) -> int:
        """The delay with mode Fixed, in seconds."""
        return 300 if self.fixed_window is None else seconds(self.fixed_window)


class LatencyPenaltySpec(ApiModel):
    """What it costs that requests wait."""

    rules = (
        Rule(
            cel="duration(self.target) >= duration('5ms') && duration(self.target) <= duration('5m')",
            message="spec.autoscaling.cost.latencyPenalty.target must be between 5ms and 5m, which workers' "
            "times to the first token can be told from",
            holds=lambda penalty: MIN_FIRST_TOKEN_SECONDS <= penalty.target_s <= MAX_FIRST_TOKEN_SECONDS,
        ),
    )

    target: Annotated[
        ShortDuration,
        Field(
            description="What the 99th percentile of the time to the first token should be at most, as a Go "
            "duration in whole minutes, seconds and milliseconds: 500ms, 1s.",
        ),
    ]

    @property
    def target_s(self) -> float:
        """The target, in seconds."""
        return exact_seconds(self.target)


class CostSpec(ApiModel):
    """What a worker costs, so that what was saved can be told as money."""

    rules = (
        Rule(
            cel="!has(self.latencyPenalty) || self.perReplicaHour > 0.0",
            message="spec.autoscaling.cost.latencyPenalty needs a price to weight: set "
            "spec.autoscaling.cost.perReplicaHour above 0",
            holds=lambda cost: cost.latency_penalty is None or cost.per_replica_hour > 0,
        ),
    )

    per_replica_hour: Annotated[
        float,
        Field(description="Price of one worker for one hour.", ge=0, le=1_000_000),
    ]
    currency: Annotated[
        str,
        Field(
            description="Currency of the price, as ISO 4217 writes it.", pattern="^[A-Z]{3}$", max_length=3
        ),
    ] = "USD"
    latency_penalty: Annotated[
        LatencyPenaltySpec | None,
        Field(
            description="Weights the pool's replica-time, minute by minute, by 1 + 0.2 * max(0, (p99 - "
            "target) / target), p99 being the 99th percentile of the time to the first token. What was saved "
            "is what the other window would have cost unweighted, less the weighted cost of the pool.",
        ),
    ] = None


def _uses_prometheus(scaling: "AutoscalingSpec") -> bool:
    if scaling.scale_down.mode == ScaleDownMode.FLATNESS:
        return True
    return scaling.provider == Provider.KEDA and scaling.metric.type != MetricType.CPU


def _keda_heeds_tls(scaling: "AutoscalingSpec") -> bool:
    prometheus = scaling.prometheus
    if scaling.provider != Provider.KEDA or scaling.metric.type == MetricType.CPU:
        return True
    if prometheus is None or prometheus.tls is None:
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
            cel="!has(self.prometheus) || self.scaleDown.mode == 'Flatness'"
            " || (self.provider == 'KEDA' && self.metric.type != 'CPU')",
            message="spec.autoscaling.prometheus is for spec.autoscaling.scaleDown.mode: Flatness, and for "
            "spec.autoscaling.provider: KEDA with another spec.autoscaling.metric.type than CPU",
            holds=lambda scaling: scaling.prometheus is None or _uses_prometheus(scaling),
        ),
        Rule(
            cel="self.scaleDown.mode != 'Flatness' || !has(self.prometheus) || !has(self.prometheus.tls)"
            " || !has(self.prometheus.tls.certificateSecretRef)",
            message="spec.autoscaling.prometheus.tls.certificateSecretRef is for KEDA alone: the operator, "
            "which asks with spec.autoscaling.scaleDown.mode: Flatness, shows none; set mode: Fixed",
            holds=lambda scaling: (
                scaling.scale_down.mode != ScaleDownMode.FLATNESS
                or scaling.prometheus is None
                or scaling.prometheus.tls is None
                or scaling.prometheus.tls.certificate_secret_ref is None
            ),
        ),
        Rule(
            cel="self.provider != 'KEDA' || self.metric.type == 'CPU'"
            " || !has(self.prometheus) || !has(self.prometheus.tls)"
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
        Field(
            description="Prometheus that the operator asks for the load with scaleDown.mode: Flatness, and "
            "KEDA for the metric."
        ),
    ] = None

    cost: Annotated[
        CostSpec | None,
        Field(description="What a worker costs; what was spent and saved is then told as money too."),
    ] = None

    @property
    def credentials_for_keda(self) -> PrometheusSpec | None:
        """The Prometheus that KEDA is asked to show credentials to, where it is to show any."""
        if self.metric.type == MetricType.CPU or self.prometheus is None:
            return None
        return self.prometheus if self.prometheus.has_credentials else None


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
