"""The worker's pod and engine."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.model import PullPolicy
from zerolayer_operator.api.types import (
    Affinity,
    EnvVar,
    ImageReference,
    LocalObjectReference,
    ObjectName,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)

DEFAULT_RESOURCE_NAME = "nvidia.com/gpu"


class Device(StrEnum):
    """What a worker computes on."""

    CPU = "cpu"
    GPU = "gpu"


class DType(StrEnum):
    """Number format of weights and activations."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Quantization(StrEnum):
    """Weights with fewer bits."""

    INT8 = "int8"
    INT4 = "int4"


def _leaves_accelerator(worker: "WorkerSpec") -> bool:
    resources = worker.resources or {}
    name = worker.resource_name or DEFAULT_RESOURCE_NAME
    return all(name not in (resources.get(part) or {}) for part in ("limits", "requests"))


_NAMED = f"(has(self.resourceName) ? self.resourceName : '{DEFAULT_RESOURCE_NAME}')"

_MapValue = Annotated[str, Field(max_length=4096)]


class WorkerSpec(ApiModel):
    """The worker's image, where its pods run, and how its engine is set up."""

    rules = (
        Rule(
            cel="self.device == 'gpu' || (!has(self.resourceName) && !has(self.count))",
            message="spec.worker.resourceName and spec.worker.count are for spec.worker.device: gpu",
            holds=lambda worker: (
                worker.device == Device.GPU or (worker.resource_name is None and worker.count is None)
            ),
        ),
        Rule(
            cel="!has(self.resources)"
            f" || ((!has(self.resources.limits) || !({_NAMED} in self.resources.limits))"
            f" && (!has(self.resources.requests) || !({_NAMED} in self.resources.requests)))",
            message="spec.worker.resources must not name the accelerator: set spec.worker.count",
            holds=_leaves_accelerator,
        ),
        Rule(
            cel="!has(self.env) || self.env.all(e, !e.name.startsWith('ZEROLAYER_'))",
            message="spec.worker.env must not name variables ZEROLAYER_*: the pool's fields set them",
            holds=lambda worker: (
                not any(str(item.get("name", "")).startswith("ZEROLAYER_") for item in worker.env or ())
            ),
        ),
    )

    image: Annotated[
        ImageReference | None,
        Field(
            description="Worker image. If absent, the operator's default is taken once for each revision and "
            "kept: an operator upgrade does not restart workers. A tag is resolved to a digest where the "
            "operator may ask the registry."
        ),
    ] = None
    image_pull_policy: Annotated[
        PullPolicy | None,
        Field(description="When nodes pull the worker image; the operator's default if absent."),
    ] = None
    image_pull_secrets: Annotated[
        tuple[LocalObjectReference, ...] | None,
        Field(
            description="Secrets with credentials for the registries of the worker and model images.",
            max_length=8,
        ),
    ] = None
    device: Annotated[
        Device,
        Field(description="What workers compute on: gpu asks the scheduler for accelerators, cpu does not."),
    ] = Device.GPU
    resource_name: Annotated[
        str | None,
        Field(
            description="Extended resource that stands for one accelerator; "
            f"{DEFAULT_RESOURCE_NAME} if absent. Only for device: gpu.",
            min_length=3,
            max_length=128,
            pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
        ),
    ] = None
    count: Annotated[
        int | None,
        Field(description="Accelerators for each worker; 1 if absent. Only for device: gpu.", ge=1, le=16),
    ] = None
    resources: Annotated[
        ResourceRequirements | None,
        Field(
            description="CPU, memory and other resources of a worker. A cpu pool that requests no CPU gets a "
            "request of 500m, because its autoscaler measures use against it; an Event says so."
        ),
    ] = None
    node_selector: Annotated[
        dict[str, _MapValue] | None,
        Field(description="Labels that a node must have to run workers.", max_length=64),
    ] = None
    tolerations: Annotated[
        tuple[Toleration, ...] | None,
        Field(description="Taints of nodes that workers tolerate.", max_length=32),
    ] = None
    affinity: Annotated[
        Affinity | None,
        Field(description="Rules that attract workers to nodes or other pods, or keep them apart."),
    ] = None
    topology_spread_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...] | None,
        Field(description="How workers spread over zones, nodes and other domains.", max_length=16),
    ] = None
    env: Annotated[
        tuple[EnvVar, ...] | None,
        Field(
            description="Further environment variables; names that begin with ZEROLAYER_ are taken.",
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = None
    priority_class_name: Annotated[
        ObjectName | None,
        Field(description="PriorityClass of the workers' pods."),
    ] = None
    pod_annotations: Annotated[
        dict[str, _MapValue] | None,
        Field(
            description="Annotations for the workers' pods, for example for a service mesh.", max_length=64
        ),
    ] = None
    max_model_len: Annotated[
        int | None,
        Field(
            description="Most tokens of prompt and answer together; the model's own maximum if absent. A "
            "larger one than the model has is refused by the worker, and a condition says so.",
            ge=16,
            le=4194304,
        ),
    ] = None
    memory_utilization: Annotated[
        float | None,
        Field(
            description="Share of the memory that weights and activations leave, of the accelerator or the "
            "container's limit, which keys and values may take; 0.92 if absent.",
            ge=0.05,
            le=1,
        ),
    ] = None
    cuda_graphs: Annotated[
        bool | None,
        Field(
            description="Captures decode steps as CUDA graphs, which saves the start of each of "
            "their kernels; true if absent. Ignored on CPUs."
        ),
    ] = None
    max_batch_size: Annotated[
        int,
        Field(description="Most requests that one worker computes at the same time.", ge=1, le=1024),
    ] = 8
    dtype: Annotated[
        DType,
        Field(
            description="Number format of the weights; auto takes bfloat16 where the device computes in it."
        ),
    ] = DType.AUTO
    quantization: Annotated[
        Quantization | None,
        Field(
            description="Keeps the weights in fewer bits, which decodes faster; on CPUs only. "
            "As they are if absent."
        ),
    ] = None
