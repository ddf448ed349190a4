"""What a pod's own status says is wrong with it, in words that name the remedy; no I/O.

A pod that fails is described anew at every attempt: its container waits, runs and ends in turn, and each time
the same is said with another time or port in it. All of these give the same problem.
"""

import re
from collections.abc import Iterator
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.observe.access import conditions, items, section, timestamp
from zerolayer_operator.observe.state import Object, Problem
from zerolayer_operator.observe.wording import in_fields, one_line

IMAGE_VOLUMES_OFF: Final = "set worker.imageVolumes=false in the chart's values"
"""The remedy where the API server knows no images as volumes."""

NODE_LACKS_IMAGE_VOLUMES: Final = (
    f"where nodes can't mount images as volumes, {IMAGE_VOLUMES_OFF} and delete the Deployment, which keeps "
    "the template that it was made with"
)
"""The remedy where a node fails at them."""

_PULL_FAILURES: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_START_FAILURES: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)
_NEVER_RAN: Final = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of containers that ended because they couldn't be started; they wait with RunContainerError."""
_OUT_OF_MEMORY: Final = "OOMKilled"
_BACKING_OFF: Final = re.compile(r'^Back-off pulling image "[^"]*"(?:: \w+)?(?:: )?')
"""What the kubelet puts before the last error between two attempts; before Kubernetes 1.32, in its place."""
ANCHOR_REFUSED: Final = re.compile(r"Anchor[A-Z][A-Za-z]+$")
"""Reasons of problems that workers have with their anchor; they refuse to start, and always will."""

_REFUSES: Final = re.compile(r"\b(Anchor[A-Z][A-Za-z]+): (.+)")
_NO_NODE: Final = re.compile(r"^\d+/\d+ nodes are available: (.+?)\.(?:\s|$)")
"""The scheduler's reasons; what follows is about preemption."""


def pod_problem(body: Object) -> Problem | None:
    """The first problem of a pod: of the scheduler, an image, a container that ends or gives no answer."""
    return _scheduling(body) or next(_containers(body), None) or _fallen_out(body)


def _scheduling(body: Object) -> Problem | None:
    scheduled = conditions(body).get("PodScheduled", {})
    if scheduled.get("reason") != "Unschedulable":
        return None
    return Problem(
        "Unschedulable",
        f"no node can run pod {body['metadata']['name']}: {_why_no_node(scheduled.get('message'))}; add a "
        "node with free resources, or ask for less in spec.worker (resources, count, nodeSelector, "
        "tolerations)",
    )


def _why_no_node(message: object) -> str:
    """The scheduler's reasons without numbers of nodes, which change with whatever else the cluster runs."""
    said = one_line(message)
    found = _NO_NODE.match(said)
    if found is None:
        return said
    reasons = re.split(r", (?=\d+ )", found[1])
    return ", ".join(sorted({re.sub(r"^\d+ ", "", reason) for reason in reasons}))


def _containers(body: Object) -> Iterator[Problem]:
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for container in items(body, "status", field):
            problem = _container(body, container, is_init=is_init)
            if problem is not None:
                yield problem


def _container(body: Object, container: Object, *, is_init: bool) -> Problem | None:
    waiting = section(container, "state", "waiting")
    reason, said = waiting.get("reason"), waiting.get("message") or ""
    if reason in _PULL_FAILURES:
        return _not_pulled(body["metadata"]["name"], said, container.get("image"))
    if reason in _START_FAILURES:
        return _not_started(body, container, one_line(said), may_be_image=reason == "CreateContainerError")
    return _ended(body, container, is_init=is_init)


def _not_pulled(pod: str, said: str, image: object) -> Problem:
    """An image's problem; a model's image, mounted, fails here too, and the message says which one it is."""
    cause = one_line(_BACKING_OFF.sub("", said))
    quote = cause or one_line(said) or f"image {image}"
    return Problem(
        "ImagePullFailed",
        f"an image of pod {pod} can't be pulled: {quote}; check spec.worker.image, spec.model.source.image "
        "and spec.worker.imagePullSecrets",
        quote,
        vague=not cause,
    )


def _not_started(body: Object, container: Object, said: str, *, may_be_image: bool = False) -> Problem:
    pod, remedy = body["metadata"]["name"], "check spec.worker.env and the objects it names"
    if may_be_image and any("image" in volume for volume in items(body, "spec", "volumes")):
        remedy = NODE_LACKS_IMAGE_VOLUMES
    return Problem(
        "ContainerNotStarted",
        f"container {container.get('name')} of pod {pod} can't start: {said}; {remedy}",
        said,
    )


def _ended(body: Object, container: Object, *, is_init: bool) -> Problem | None:
    ended = _termination(container, "state", is_init) or _termination(container, "lastState", is_init)
    if ended is None or container.get("ready"):
        return None
    pod, code, said = body["metadata"]["name"], ended.get("exitCode"), one_line(ended.get("message"))
    if ended.get("reason") in _NEVER_RAN:
        return _not_started(body, container, said)
    if ended.get("reason") == _OUT_OF_MEMORY:
        return Problem(
            "OutOfMemory",
            f"pod {pod} needs more memory than it may use; raise spec.worker.resources.limits.memory or "
            "lower spec.worker.maxModelLen",
        )
    quote = in_fields(said) or f"exit code {code}"
    return _not_fetched(pod, container, quote) if is_init else _worker_fails(pod, code, quote)


def _not_fetched(pod: str, container: Object, quote: str) -> Problem:
    if container.get("name") == names.COPY_ANCHOR:
        return Problem(
            "AnchorNotFetched",
            f"the anchor can't be copied by pod {pod}: {quote}; check spec.anchor.source.image and its path",
            quote,
        )
    return Problem(
        "ModelNotFetched",
        f"the model can't be fetched by pod {pod}: {quote}; check spec.model.source and that the cluster "
        "may reach it",
        quote,
    )


def _worker_fails(pod: str, code: object, quote: str) -> Problem:
    refuses = _REFUSES.search(quote)
    if refuses is not None:
        return Problem(
            refuses[1],
            f"the worker in pod {pod} refuses its anchor: {refuses[2]}; check spec.anchor, and look at the "
            "bundle with `zerolayer-worker anchor inspect`",
            refuses[2],
        )
    return Problem(
        "WorkerFails",
        f"the worker in pod {pod} fails (exit code {code}): {quote}; `kubectl logs {pod} --previous` shows "
        "more",
        quote,
    )


def _termination(container: Object, state: str, is_init: bool) -> Object | None:
    """How a container ended, unless it was to end: a worker never is, whatever its exit code."""
    ended = section(container, state, "terminated")
    return ended if ended.get("exitCode") or (ended and not is_init) else None


def _fallen_out(body: Object) -> Problem | None:
    """A worker that runs on but is ready no more: its readiness was lost after its container began."""
    pod, ready = body["metadata"]["name"], conditions(body).get("Ready", {})
    lost = timestamp(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None
    for container in items(body, "status", "containerStatuses"):
        began = timestamp(section(container, "state", "running").get("startedAt"))
        if lost is not None and began is not None and lost > began:
            return Problem(
                "WorkerNotReady",
                f"the worker in pod {pod} was ready and is so no more; `kubectl describe pod {pod}` shows "
                "which probe fails, or that its node is gone",
            )
    return None
