"""The pod template of a revision's workers."""

from typing import Any

from zerolayer_operator.api import names
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.worker import Device, WorkerSpec
from zerolayer_operator.build.anchor import anchor_parts
from zerolayer_operator.build.container import RESTRICTED, TMP_MOUNT, environment, escaped, pod_basics
from zerolayer_operator.build.keys import KEYS_MOUNT, KEYS_PATH, key_volumes
from zerolayer_operator.build.meta import HTTP_PORT, OPS_PORT, Object
from zerolayer_operator.build.model import model_parts
from zerolayer_operator.build.parts import Parts
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.resources import worker_resources


def pod_template(
    pool: str, revision: str, spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults
) -> Object:
    """The pod template; it passes the restricted level unless the model lies on the node's disk."""
    worker = spec.worker
    brought = (model_parts(spec, frozen, defaults), anchor_parts(spec, frozen, defaults))
    pod: Object = {
        **pod_basics(pool),
        "terminationGracePeriodSeconds": spec.termination_grace_period_seconds,
        "containers": [_container(revision, spec, frozen, defaults, brought)],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            *key_volumes(spec),
            *(volume for parts in brought for volume in parts.volumes),
        ],
    }
    init = [container for parts in brought for container in parts.init_containers]
    if init:
        pod["initContainers"] = init
    pod |= _placement(worker)
    metadata: Object = {
        "labels": {**names.owned_by_pool(pool), names.LABEL_REVISION: revision},
    }
    if worker.pod_annotations:
        metadata["annotations"] = dict(worker.pod_annotations)
    return {"metadata": metadata, "spec": pod}


def _container(
    revision: str, spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults, brought: tuple[Parts, ...]
) -> Object:
    worker = spec.worker
    mounts: list[Object] = [TMP_MOUNT, *(mount for parts in brought for mount in parts.mounts)]
    found = [argument for parts in brought for argument in parts.arguments]
    if spec.api_key_secret_ref is not None:
        mounts.append(KEYS_MOUNT)
    return {
        "name": names.WORKER_NAME,
        "image": frozen.image,
        "imagePullPolicy": worker.image_pull_policy or defaults.worker_image_pull_policy,
        "args": ["serve", *found, *_arguments(revision, spec)],
        "env": environment(worker),
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
            {"name": "ops", "containerPort": OPS_PORT, "protocol": "TCP"},
        ],
        "resources": worker_resources(worker),
        "volumeMounts": mounts,
        "securityContext": dict(RESTRICTED),
        # What a worker said last is what a condition quotes.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "lifecycle": {
            "preStop": {"exec": {"command": ["zerolayer-worker", "drain", "--ops-port", str(OPS_PORT)]}}
        },
        **_probes(spec.warmup.timeout_seconds),
    }


def _arguments(revision: str, spec: PoolSpec) -> list[str]:
    worker, warmup = spec.worker, spec.warmup
    values: dict[str, Any] = {
        "model-name": spec.model.name,
        "port": HTTP_PORT,
        "ops-port": OPS_PORT,
        "device": "cuda" if worker.device == Device.GPU else "cpu",
        "dtype": worker.dtype.value,
        "quantization": None if worker.quantization is None else worker.quantization.value,
        "max-model-len": worker.max_model_len,
        "memory-utilization": worker.memory_utilization,
        "cuda-graphs": None if worker.cuda_graphs is None else str(worker.cuda_graphs).lower(),
        "max-batch-size": worker.max_batch_size,
        "default-intent": spec.intents.default.value,
        "allowed-intents": ",".join(intent.value for intent in spec.intents.allowed),
        "api-key-dir": KEYS_PATH if spec.api_key_secret_ref is not None else None,
        "revision": revision,
        "warmup-prompt": warmup.prompt,
        "warmup-max-tokens": warmup.max_tokens,
        "warmup-timeout-seconds": warmup.timeout_seconds,
        "warmup-settle-ratio": warmup.settle_ratio,
        "drain-seconds": spec.drain_seconds,
    }
    # One argument each: a prompt may begin with a dash.
    return [f"--{flag}={escaped(value)}" for flag, value in values.items() if value is not None]


def _probes(warmup_timeout: int) -> Object:
    period = 2 if warmup_timeout % 2 == 0 else 1
    return {
        "startupProbe": {
            **_probe("/startupz"),
            "periodSeconds": period,
            "failureThreshold": warmup_timeout // period,
        },
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**_probe("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "ops"}, "timeoutSeconds": 5}


def _placement(worker: WorkerSpec) -> Object:
    placement: Object = {
        "imagePullSecrets": list(worker.image_pull_secrets or ()),
        "nodeSelector": worker.node_selector,
        "tolerations": list(worker.tolerations or ()),
        "affinity": worker.affinity,
        "topologySpreadConstraints": list(worker.topology_spread_constraints or ()),
        "priorityClassName": worker.priority_class_name,
    }
    return {key: value for key, value in placement.items() if value}
