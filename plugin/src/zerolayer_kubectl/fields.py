"""Reading what an API server sent without relying on any of it: an operator may be older or newer."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, cast

Object = dict[str, Any]

_DURATION_PART: Final = re.compile(r"([0-9]+)([hms])")
_LONGEST_S: Final = 10**10
"""A pool's longest duration is a third of that."""

_UNIT_SECONDS: Final = {"h": 3600, "m": 60, "s": 1}


def part(source: Object, *path: str) -> Object:
    """What lies under a path of keys; empty where nothing does, or something else."""
    found: Any = source
    for key in path:
        found = cast("Object", found).get(key) if isinstance(found, dict) else None
    return cast("Object", found) if isinstance(found, dict) else {}


def parts(source: Object, key: str) -> Iterator[Object]:
    """The objects of a list."""
    found = source.get(key)
    if isinstance(found, list):
        yield from (cast("Object", item) for item in cast("list[Any]", found) if isinstance(item, dict))


def text(source: Object, key: str) -> str | None:
    """A text that is not empty; what would move a terminal's cursor or colour it is a space."""
    found = source.get(key)
    if not isinstance(found, str):
        return None
    return "".join(char if char.isprintable() else " " for char in found) or None


def texts(source: Object, key: str) -> Iterator[str]:
    """The texts of a list."""
    found = source.get(key)
    if isinstance(found, list):
        yield from (item for item in cast("list[Any]", found) if isinstance(item, str))


def number(source: Object, key: str) -> int | None:
    """A whole number."""
    found = source.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def time(source: Object, key: str) -> datetime | None:
    """A time; ``None`` where it can't be read."""
    try:
        found = datetime.fromisoformat(source.get(key) or "")
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def seconds(source: Object, key: str, default: int) -> int:
    """Seconds of a Go duration such as ``1h30m``."""
    found = _DURATION_PART.findall(text(source, key) or "")
    return (
        min(_LONGEST_S, sum(int(count) * _UNIT_SECONDS[unit] for count, unit in found)) if found else default
    )
