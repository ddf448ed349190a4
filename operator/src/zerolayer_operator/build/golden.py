"""The Job that asks a golden set of both revisions, and the rule about whom its pod may reach."""

from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import JOB, NETWORK_POLICY
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.worker import WorkerSpec
from zerolayer_operator.build.container import RESTRICTED, TMP_MOUNT, environment, pod_basics
from zerolayer_operator.build.keys import KEYS_MOUNT, KEYS_PATH, key_volumes
from zerolayer_operator.build.meta import HTTP_PORT, Object, child
from zerolayer_operator.build.model import model_parts
from zerolayer_operator.build.parts import Parts
from zerolayer_operator.build.services import DNS_EGRESS, hub_egress, port
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.golden import PlannedGolden
from zerolayer_operator.observe.state import ObservedPool

SET_PATH: Final = "/golden"
BUILTIN_PATH: Final = "/opt/zerolayer/models"
"""Where the worker image has its own models."""

TRIES: Final = 3

_CPU_ONLY: Final = ("cpu", "memory", "ephemeral-storage")


def golden_job(pool: ObservedPool, spec: PoolSpec, planned: PlannedGolden, defaults: Defaults) -> Object:
    """The Job: one pod of the canary's image, which leaves its report behind as its last word."""
    metadata: Object = {"labels": names.golden_labels(pool.name)}
    if spec.worker.pod_annotations:
        metadata["annotations"] = dict(spec.worker.pod_annotations)
    job = {
        "backoffLimit": TRIES - 1,
        "activeDeadlineSeconds": planned.deadline_s,
        "template": {"metadata": metadata, "spec": _pod(pool, spec, planned, defaults)},
    }
    return child(
        pool,
        JOB,
        planned.name,
        {"spec": job},
        labels=_labels(pool, planned),
        annotations={names.ANNOTATION_GOLDEN_RUN: planned.run},
    )


def golden_policy(pool: ObservedPool, spec: PoolSpec, planned: PlannedGolden) -> Object:
    """The Job's pod may reach the pool's workers, and what fetching the model needs; nobody reaches it."""
    workers = {"podSelector": {"matchLabels": {names.LABEL_POOL: pool.name}}}
    policy = {
        "podSelector": {"matchLabels": {names.LABEL_GOLDEN: pool.name}},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [DNS_EGRESS, {"to": [workers], "ports": [port(HTTP_PORT, "TCP")]}, *hub_egress(spec)],
    }
    return child(pool, NETWORK_POLICY, planned.name, {"spec": policy}, labels=_labels(pool, planned))


def _labels(pool: ObservedPool, planned: PlannedGolden) -> dict[str, str]:
    return {names.LABEL_GOLDEN: pool.name, names.LABEL_REVISION: planned.green}


def _pod(pool: ObservedPool, spec: PoolSpec, planned: PlannedGolden, defaults: Defaults) -> Object:
    model = model_parts(spec, planned.frozen, defaults)
    mounts = [TMP_MOUNT, {"name": "golden", "mountPath": SET_PATH, "readOnly": True}, *model.mounts]
    if spec.api_key_secret_ref is not None:
        mounts.append(KEYS_MOUNT)
    container: Object = {
        "name": names.GOLDEN_NAME,
        "image": planned.frozen.image,
        "imagePullPolicy": spec.worker.image_pull_policy or defaults.worker_image_pull_policy,
        "args": ["golden", "run", *_arguments(pool, spec, planned, model)],
        "env": environment(spec.worker),
        "resources": _resources(spec.worker),
        "volumeMounts": mounts,
        "securityContext": dict(RESTRICTED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod: Object = {
        **pod_basics(pool.name),
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "golden", "configMap": _source(planned)},
            *key_volumes(spec),
            *model.volumes,
        ],
        **_placement(spec.worker),
    }
    if model.init_containers:
        pod["initContainers"] = list(model.init_containers)
    return pod


def _source(planned: PlannedGolden) -> Object:
    """The set alone, whatever else the ConfigMap holds."""
    key = planned.source.key
    return {"name": planned.source.name, "items": [{"key": key, "path": key}]}


def _arguments(pool: ObservedPool, spec: PoolSpec, planned: PlannedGolden, model: Parts) -> list[str]:
    values = {
        "set": f"{SET_PATH}/{planned.source.key}",
        "blue": _address(pool, planned.blue),
        "green": _address(pool, planned.green),
        "model": _folder(model),
    }
    if spec.api_key_secret_ref is not None:
        # The folder, where the Secret's keys are not known: any of them will do.
        values["api-key-file"] = "/".join(filter(None, (KEYS_PATH, spec.api_key_secret_ref.key)))
    return [f"--{flag}={value}" for flag, value in values.items()]


def _folder(model: Parts) -> str:
    """Where the base model lies, whichever way a server is told."""
    flag, _, value = model.arguments[0].partition("=")
    return f"{BUILTIN_PATH}/{value}" if flag == "--builtin" else value


def _address(pool: ObservedPool, revision: str) -> str:
    return f"http://{names.revision_service_name(pool.name, revision)}.{pool.namespace}.svc"


def _resources(worker: WorkerSpec) -> Object:
    """The worker's, without accelerators: the base model compares answers on the CPU."""
    found: Object = {}
    for part in ("requests", "limits"):
        amounts: Object = (worker.resources or {}).get(part) or {}
        kept = {name: amount for name, amount in amounts.items() if name in _CPU_ONLY}
        if kept:
            found[part] = kept
    return found


def _placement(worker: WorkerSpec) -> Object:
    """Where workers run, as their volumes may be there alone; not what keeps workers apart or together."""
    attraction = (worker.affinity or {}).get("nodeAffinity")
    placement: Object = {
        "imagePullSecrets": list(worker.image_pull_secrets or ()),
        "nodeSelector": worker.node_selector,
        "tolerations": list(worker.tolerations or ()),
        "affinity": {"nodeAffinity": attraction} if attraction else None,
        "priorityClassName": worker.priority_class_name,
    }
    return {key: value for key, value in placement.items() if value}
