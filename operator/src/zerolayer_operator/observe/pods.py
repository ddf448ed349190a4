"""What a pod's own status says is wrong with it, in words that name the remedy; no I/O."""

from collections.abc import Iterator
from typing import Final

from zerolayer_operator.observe.access import items, section
from zerolayer_operator.observe.state import Object, Problem

_PULL_FAILURES: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
_START_FAILURES: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)
_MESSAGE_LIMIT: Final = 600
_FIELDS: Final = {
    "max_model_len": "spec.worker.maxModelLen",
    "--builtin": "spec.model.source.builtin.name",
    "--model-path": "spec.model.source",
}
"""Words of a worker, and the field of the pool that they are about."""
_OUT_OF_MEMORY: Final = "OOMKilled"


def pod_problem(body: Object) -> Problem | None:
    """The first problem of a pod: of the scheduler, of an image, or of a container that ends."""
    return _scheduling(body) or next(_containers(body), None)


def _scheduling(body: Object) -> Problem | None:
    for item in items(body, "status", "conditions"):
        if item["type"] == "PodScheduled" and item.get("reason") == "Unschedulable":
            return Problem(
                "Unschedulable",
                f"no node can run pod {body['metadata']['name']}: {_short(item.get('message'))}; add a node "
                "with free resources, or ask for less in spec.worker (resources, count, nodeSelector, "
                "tolerations)",
            )
    return None


def _containers(body: Object) -> Iterator[Problem]:
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for container in items(body, "status", field):
            problem = _container(body["metadata"]["name"], container, is_init=is_init)
            if problem is not None:
                yield problem


def _container(pod: str, container: Object, *, is_init: bool) -> Problem | None:
    waiting = section(container, "state", "waiting")
    reason = waiting.get("reason")
    if reason in _PULL_FAILURES:
        # A model's image, mounted as a volume, fails here too; the message says which one it is.
        said = _short(waiting.get("message")) or container.get("image")
        return Problem(
            "ImagePullFailed",
            f"an image of pod {pod} can't be pulled: {said}; check spec.worker.image, "
            "spec.model.source.image and spec.worker.imagePullSecrets",
        )
    if reason in _START_FAILURES:
        return Problem(
            "ContainerNotStarted",
            f"container {container.get('name')} of pod {pod} can't start: {_short(waiting.get('message'))}; "
            "check spec.worker.env and the objects it names",
        )
    return _ended(pod, container, is_init=is_init)


def _ended(pod: str, container: Object, *, is_init: bool) -> Problem | None:
    ended = _failed(container, "state") or _failed(container, "lastState")
    if ended is None or container.get("ready"):
        return None
    code, reason = ended.get("exitCode"), ended.get("reason")
    if reason == _OUT_OF_MEMORY:
        return Problem(
            "OutOfMemory",
            f"pod {pod} needs more memory than it may use; raise spec.worker.resources.limits.memory or "
            "lower spec.worker.maxModelLen",
        )
    said = _short(ended.get("message")) or f"exit code {code}"
    if is_init:
        return Problem(
            "ModelNotFetched",
            f"the model can't be fetched by pod {pod}: {said}; check spec.model.source and that the cluster "
            "may reach it",
        )
    fields = ", ".join(field for word, field in _FIELDS.items() if word in said)
    return Problem(
        "WorkerFails",
        f"the worker in pod {pod} fails (exit code {code}): {said}; "
        f"{f'check {fields}: ' if fields else ''}`kubectl logs {pod} --previous` shows more",
    )


def _failed(container: Object, state: str) -> Object | None:
    ended = section(container, state, "terminated")
    return ended if ended.get("exitCode") else None


def _short(text: object) -> str:
    """The end of a text on one line: errors say what matters last."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= _MESSAGE_LIMIT else "…" + line[-_MESSAGE_LIMIT:]
