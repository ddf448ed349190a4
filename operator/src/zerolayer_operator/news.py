"""Which events are worth a look."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from zerolayer_operator.api.kinds import AUTOSCALER, DEPLOYMENT, POD
from zerolayer_operator.workqueue import PoolKey

_COUNTS: Final = ("observedGeneration", "replicas", "readyReplicas")
_PASSING: Final = frozenset({"resourceVersion", "managedFields"})
_OF_PODS: Final = ("uid", "labels", "ownerReferences", "deletionTimestamp")


class News:
    """Tells what is new about a pool from what is only put in other words.

    The operator's own write of a status comes back as an event. Were each looked at, a refusal that is worded
    differently each time would be asked for, written down and looked at again without a pause.
    """

    def __init__(self) -> None:
        self._known: dict[PoolKey, dict[str, Any]] = {}

    def holds(self, key: PoolKey, change: str | None, body: Mapping[str, Any]) -> bool:
        """Whether an event tells more than other messages in a pool's conditions.

        Args:
            key: The pool.
            change: What kopf calls the event's type; ``None`` for what a watch begins with.
            body: The pool.
        """
        if change == "DELETED":
            self._known.pop(key, None)
            return True
        told = _without_wording(body)
        before, self._known[key] = self._known.get(key), told
        return change is None or before != told


class ChildNews:
    """Tells what decisions about a pool depend on from what its children only report.

    An autoscaler writes down every 15 s what it has measured, and a Deployment and a disruption budget count
    a new worker several times. Were each looked at, most looks would find nothing to do. Of what was seen
    only a hash is kept.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def holds(self, change: str | None, body: Mapping[str, Any]) -> bool:
        """Whether an event tells of something that a decision may depend on.

        Args:
            change: What kopf calls the event's type; ``None`` for what a watch begins with, also one that
                only took another's place.
            body: The child, with its kind.
        """
        uid = body["metadata"]["uid"]
        if change == "DELETED":
            self._known.pop(uid, None)
            return True
        told = hash(json.dumps(_decided_on(body), sort_keys=True))
        before, self._known[uid] = self._known.get(uid), told
        return before != told


def _decided_on(body: Mapping[str, Any]) -> dict[str, Any]:
    kind = body["kind"]
    metadata = cast("Mapping[str, Any]", body["metadata"])
    if kind == POD.kind:
        return {"metadata": {name: metadata.get(name) for name in _OF_PODS}, "status": body.get("status")}
    kept = {name: value for name, value in metadata.items() if name not in _PASSING}
    status = cast("Mapping[str, Any]", body.get("status") or {})
    return {**body, "metadata": kept, "status": _status_decided_on(kind, status)}


def _status_decided_on(kind: str, status: Mapping[str, Any]) -> list[Any]:
    conditions = cast("list[Mapping[str, Any]]", status.get("conditions") or [])
    if kind == DEPLOYMENT.kind:
        told = [[item.get(name) for name in ("type", "status", "reason", "message")] for item in conditions]
        return [*(status.get(name) for name in _COUNTS), told]
    if kind == AUTOSCALER.kind:
        active = [item for item in conditions if item.get("type") == "ScalingActive"]
        return [[item.get("status"), item.get("reason")] for item in active]
    return []


def _without_wording(body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = cast("Mapping[str, Any]", body["metadata"])
    status = cast("Mapping[str, Any]", body.get("status") or {})
    conditions = cast("list[Mapping[str, Any]]", status.get("conditions") or [])
    told = [(item.get("type"), item.get("status"), item.get("reason")) for item in conditions]
    fields = ("uid", "generation", "labels", "annotations", "deletionTimestamp", "ownerReferences")
    return {
        "metadata": {name: metadata.get(name) for name in fields},
        "status": {**status, "conditions": told},
    }
