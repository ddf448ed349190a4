"""Reads Kubernetes objects into observed values; no I/O."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from zerolayer_operator.api import names
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.observe.access import conditions, items, section, timestamp
from zerolayer_operator.observe.pods import pod_problem
from zerolayer_operator.observe.state import DeletionCost, Object, ObservedDeployment, ObservedPod
from zerolayer_operator.observe.wording import without_pod

_EARLIEST: Final = 2000
_LATEST: Final = 9000
"""Years of times in a status: durations, which are of centuries at most, can be added to them."""

_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


def parse_spec(raw: object) -> tuple[PoolSpec | None, str | None]:
    """The spec, or why it can't be understood (it was stored before the schema forbade it, for example)."""
    try:
        return PoolSpec.model_validate_json(json.dumps(raw)), None
    except ValidationError as error:
        problems = [
            f"spec.{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()
        ]
        return None, "; ".join(problems)


def parse_status(raw: object) -> PoolStatus:
    """The status; an unreadable one counts as none, because everything in it can be found out again."""
    try:
        status = PoolStatus.model_validate_json(json.dumps(raw or {}))
        for moment in _moments(status):
            _check(moment)
    except ValueError:
        return PoolStatus()
    return status


def _check(moment: str | None) -> None:
    """Refuses what the API server takes for a time, but nobody can reckon with: of the year 0 or 9999."""
    read = timestamp(moment)
    if read is not None and (read.tzinfo is None or not _EARLIEST <= read.year <= _LATEST):
        raise ValueError("no time of an update")


def _moments(status: PoolStatus) -> Iterator[str | None]:
    """The times in a status that decisions depend on."""
    if status.scaling is not None:
        yield status.scaling.last_change
    update, failed = status.update, status.failed
    if update is not None:
        yield from (update.started_at, update.step_started_at, update.soak_started_at, update.switched_at)
    if failed is not None:
        yield failed.retained_until


def controlled_by(body: Object, uid: str) -> bool:
    """Whether an object's controller is the pool with this UID."""
    owners = items(body, "metadata", "ownerReferences")
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def controlled_by_earlier(body: Object, name: str, uid: str) -> bool:
    """Whether an object's controller is another pool of this name, which is gone then: names are unique."""
    return any(
        owner.get("controller")
        and (owner.get("kind"), owner.get("name")) == (names.KIND, name)
        and str(owner.get("apiVersion")).startswith(f"{names.GROUP}/")
        and owner.get("uid") != uid
        for owner in items(body, "metadata", "ownerReferences")
    )


def label(body: Object, key: str) -> str | None:
    """A label's value."""
    return section(body, "metadata", "labels").get(key)


def annotation(body: Object, key: str) -> str | None:
    """An annotation's value."""
    return section(body, "metadata", "annotations").get(key)


def parse_deployment(body: Object) -> ObservedDeployment:
    """One revision's Deployment; its name ends in the revision even where a hand took the label away."""
    metadata, spec, status = body["metadata"], section(body, "spec"), section(body, "status")
    found = conditions(body)
    failure = found.get("ReplicaFailure")
    return ObservedDeployment(
        revision=str(metadata["name"]).rsplit("-", 1)[-1],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        size=spec.get("replicas", 1),
        existing=status.get("replicas", 0),
        ready=status.get("readyReplicas", 0),
        current=status.get("observedGeneration", 0) >= metadata.get("generation", 0),
        deadline_exceeded=found.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded",
        failure=without_pod(failure.get("message")) if failure and failure["status"] == "True" else None,
        frozen=_frozen(body),
        template=_template(body),
    )


def _frozen(body: Object) -> FrozenInputs:
    """The recorded inputs; what the live pods run where the record was lost."""
    try:
        return FrozenInputs.model_validate_json(annotation(body, names.ANNOTATION_FROZEN) or "")
    except ValidationError:
        return FrozenInputs(image=items(body, "spec", "template", "spec", "containers")[0]["image"])


def _template(body: Object) -> Object:
    """The recorded pod template; the live one where the record was lost, because pods must not restart."""
    try:
        recorded: Any = json.loads(annotation(body, names.ANNOTATION_TEMPLATE) or "")
    except ValueError:
        recorded = None
    return recorded if items(recorded, "spec", "containers") else body["spec"]["template"]


def parse_pod(body: Object) -> ObservedPod:
    """One worker."""
    metadata, found = body["metadata"], conditions(body)
    scheduled, ready = found.get("PodScheduled", {}), found.get("Ready", {})
    return ObservedPod(
        name=metadata["name"],
        revision=label(body, names.LABEL_REVISION) or "",
        uid=metadata.get("uid", ""),
        node=section(body, "spec").get("nodeName"),
        scheduled_at=_since(scheduled),
        container_started_at=_first_start(body),
        ready_at=_since(ready),
        started=found.get("PodReadyToStartContainers", {}).get("status") == "True",
        gone_by=timestamp(metadata.get("deletionTimestamp")),
        problem=pod_problem(body),
        ip=section(body, "status").get("podIP"),
        deletion_cost=_deletion_cost(body),
    )


def _deletion_cost(body: Object) -> DeletionCost | None:
    """The cost that a pod bears; the operator's own is a number that nobody else wrote too."""
    value = annotation(body, names.ANNOTATION_DELETION_COST)
    if value is None:
        return None
    owners = {
        (entry.get("manager"), entry.get("operation"))
        for entry in items(body, "metadata", "managedFields")
        if f"f:{names.ANNOTATION_DELETION_COST}" in section(entry, "fieldsV1", "f:metadata", "f:annotations")
    }
    ours = owners == {(names.FIELD_MANAGER, "Apply")} and _NUMBER.fullmatch(value) is not None
    return DeletionCost(value, ours)


def _since(condition: Object) -> datetime | None:
    return timestamp(condition.get("lastTransitionTime")) if condition.get("status") == "True" else None


def _first_start(body: Object) -> datetime | None:
    for container in items(body, "status", "containerStatuses"):
        if not container.get("restartCount"):
            return timestamp(section(container, "state", "running").get("startedAt"))
    return None
