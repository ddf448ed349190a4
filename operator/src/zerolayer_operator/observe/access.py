"""Ways into a Kubernetes object that may lack any of its parts; no I/O."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from zerolayer_operator.observe.state import Object


def section(body: object, *path: str) -> Object:
    """The object at a path; empty where it, or anything on the way, is absent."""
    found: Any = body
    for key in path:
        found = cast("Object", found).get(key) if isinstance(found, dict) else None
    return cast("Object", found) if isinstance(found, dict) else {}


def items(body: object, *path: str) -> list[Object]:
    """The list of objects at a path; empty where it, or anything on the way, is absent."""
    found: Any = section(body, *path[:-1]).get(path[-1])
    return cast("list[Object]", found) if isinstance(found, list) else []


def conditions(body: Object) -> Mapping[str, Object]:
    """The conditions of an object's status by type."""
    return {item["type"]: item for item in items(body, "status", "conditions")}


def timestamp(text: str | None) -> datetime | None:
    """A Kubernetes timestamp."""
    return datetime.fromisoformat(text) if text else None
