"""What an update leaves behind, without what differs from one time to the next."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import POOL_LABEL, Pool

_KINDS: Final = (
    "configmaps,deployments,horizontalpodautoscalers,networkpolicies,poddisruptionbudgets,serviceaccounts,"
    "services"
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_GIVEN: Final = frozenset({"clusterIP", "clusterIPs"})
_MEASURED: Final = frozenset({"durationSeconds", "warmup", "lastChange"})


@dataclass(frozen=True)
class EndState:
    """A pool after an update.

    Attributes:
        children: what each is to be, by kind and name.
        status: of the pool.
        events: how often each decision was told.
    """

    children: dict[str, Any]
    status: Any
    events: Counter[tuple[str, str]]


def end_state(pool: Pool, kinds: str = _KINDS) -> EndState:
    """Reads a pool and all that bears its label.

    Args:
        pool: the pool.
        kinds: of its children.
    """
    listed = pool.kubectl(
        "-n", pool.namespace, "get", kinds, f"--selector={POOL_LABEL}={pool.name}", "-o", "json"
    )
    body = pool.manifest
    told = [item for item in pool.events() if item["involvedObject"]["uid"] == body["metadata"]["uid"]]
    return EndState(
        {f"{item['kind']}/{item['metadata']['name']}": _asked(item) for item in json.loads(listed)["items"]},
        _timeless(body["status"]),
        Counter(
            (item["reason"], _TIME.sub("TIME", item["message"]))
            for item in told
            for _ in range(item.get("count", 1))
        ),
    )


def _asked(item: Manifest) -> Manifest:
    """What an object is asked to be."""
    parts = ("spec", "immutable", "automountServiceAccountToken")
    spec = {key: _without(item[key], _GIVEN) for key in parts if key in item}
    # Too long to be read where they differ.
    held = {
        key: hashlib.sha256(value.encode()).hexdigest() for key, value in item.get("binaryData", {}).items()
    }
    return spec | {"labels": item["metadata"]["labels"], "holds": held}


def _timeless(status: Manifest) -> Any:
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    kept = _without({**status, "conditions": conditions}, _MEASURED)
    return json.loads(_TIME.sub("TIME", json.dumps(kept)))


def _without(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, keys) for key, item in value.items() if key not in keys}
    return [_without(item, keys) for item in value] if isinstance(value, list) else value
