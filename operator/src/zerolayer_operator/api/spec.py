"""The spec of a ZeroLayerPool."""

from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.anchor import AnchorSpec
from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.metric import MetricType
from zerolayer_operator.api.model import ModelSpec
from zerolayer_operator.api.routing import RoutingSpec
from zerolayer_operator.api.scaling import AutoscalingSpec, DisruptionSpec
from zerolayer_operator.api.serving import ApiKeySecretReference, IntentsSpec, WarmupSpec
from zerolayer_operator.api.update import UpdateSpec
from zerolayer_operator.api.worker import Device, WorkerSpec

DRAIN_MARGIN_SECONDS = 10


class PoolSpec(ApiModel):
    """What the user wants of a pool."""

    rules = (
        Rule(
            cel="!(has(self.replicas) && has(self.autoscaling))",
            message="spec.replicas and spec.autoscaling exclude each other: an autoscaled pool is sized by "
            "spec.autoscaling.minReplicas and spec.autoscaling.maxReplicas",
            holds=lambda spec: spec.replicas is None or spec.autoscaling is None,
        ),
        Rule(
            cel="!has(self.autoscaling) || self.autoscaling.metric.type != 'CPU'"
            " || self.worker.device == 'cpu'",
            message="spec.autoscaling.metric.type CPU is for spec.worker.device: cpu only, CPU use says "
            "nothing about a GPU worker; name another spec.autoscaling.metric.type, such as Utilization",
            holds=lambda spec: (
                spec.autoscaling is None
                or spec.autoscaling.metric.type != MetricType.CPU
                or spec.worker.device == Device.CPU
            ),
        ),
        Rule(
            cel=f"self.drainSeconds + {DRAIN_MARGIN_SECONDS} <= self.terminationGracePeriodSeconds",
            message=f"spec.drainSeconds + {DRAIN_MARGIN_SECONDS} must not exceed "
            "spec.terminationGracePeriodSeconds",
            holds=lambda spec: (
                spec.drain_seconds + DRAIN_MARGIN_SECONDS <= spec.termination_grace_period_seconds
            ),
        ),
    )

    model: Annotated[
        ModelSpec, Field(description="The model that the pool serves, and where its weights come from.")
    ]
    worker: Annotated[
        WorkerSpec,
        Field(description="The workers' image, where their pods run, and how their engine is set up."),
    ] = WorkerSpec()
    intents: Annotated[
        IntentsSpec,
        Field(description="Which intents clients may name, and which one counts when they name none."),
    ] = IntentsSpec()
    anchor: Annotated[
        AnchorSpec | None,
        Field(description="The knowledge anchor that workers lay over the model; none if absent."),
    ] = None
    update: Annotated[
        UpdateSpec,
        Field(description="How a new revision takes over from the one that serves."),
    ] = UpdateSpec()
    routing: Annotated[
        RoutingSpec | None,
        Field(description="How requests from outside of the cluster reach the pool."),
    ] = None
    replicas: Annotated[
        int | None,
        Field(
            description="Fixed number of workers; 1 if both this and autoscaling are absent.",
            ge=0,
            le=1000,
        ),
    ] = None
    autoscaling: Annotated[
        AutoscalingSpec | None,
        Field(description="Let an autoscaler size the pool; excludes replicas."),
    ] = None
    warmup: Annotated[
        WarmupSpec,
        Field(description="What a worker must answer, and how steadily, before it gets requests."),
    ] = WarmupSpec()
    disruption: Annotated[
        DisruptionSpec,
        Field(description="How many workers node drains and other evictions may take."),
    ] = DisruptionSpec()
    termination_grace_period_seconds: Annotated[
        int,
        Field(
            description="Time that a worker has to end after it was told to; at least drainSeconds + 10.",
            ge=11,
            le=86400,
        ),
    ] = 120
    drain_seconds: Annotated[
        int,
        Field(
            description="Time that requests in flight have to finish when a worker ends; a stream still open "
            "then ends with an error event.",
            ge=1,
            le=86390,
        ),
    ] = 90
    api_key_secret_ref: Annotated[
        ApiKeySecretReference | None,
        Field(description="Clients must send one of the keys in this Secret; anyone may ask if absent."),
    ] = None
    paused: Annotated[
        bool,
        Field(description="While true the operator changes nothing of this pool but its status."),
    ] = False
