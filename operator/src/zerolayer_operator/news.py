"""Which events about pools are worth a look."""

from collections.abc import Mapping
from typing import Any, cast

from zerolayer_operator.workqueue import PoolKey


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
