"""What a worker asks of its node."""

from typing import Any, Final

from zerolayer_operator.api.worker import DEFAULT_RESOURCE_NAME, Device, WorkerSpec

DEFAULT_CPU_REQUEST: Final = "500m"


def cpu_request_is_set(worker: WorkerSpec) -> bool:
    """Whether the operator adds a CPU request: a cpu worker has none, and a limit would stand for one.

    It does so for pools of a fixed size too, so that turning on autoscaling later needs no other pods.
    """
    resources = worker.resources or {}
    named = any("cpu" in (resources.get(part) or {}) for part in ("requests", "limits"))
    return worker.device == Device.CPU and not named


def worker_resources(worker: WorkerSpec) -> dict[str, Any]:
    """The user's resources, with the accelerator or the CPU request that the device needs."""
    resources: dict[str, Any] = {key: dict(value) for key, value in (worker.resources or {}).items()}
    if cpu_request_is_set(worker):
        resources.setdefault("requests", {})["cpu"] = DEFAULT_CPU_REQUEST
    if worker.device == Device.GPU:
        name = worker.resource_name or DEFAULT_RESOURCE_NAME
        resources.setdefault("limits", {})[name] = str(worker.count or 1)
    return resources
