"""Times, tables and lines for people."""

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from zerolayer_kubectl.pool import Side

_HOUR_S: Final = 3600
_MINUTE_S: Final = 60
_GAP: Final = "   "


def span(time: timedelta) -> str:
    """A length of time, as Go writes one, in its two largest units: 6h12m."""
    return span_s(time.total_seconds())


def span_s(seconds: float) -> str:
    """The same of seconds, however many."""
    total = max(0, round(seconds))
    hours, rest = divmod(total, _HOUR_S)
    minutes, left = divmod(rest, _MINUTE_S)
    if hours:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    if minutes:
        return f"{minutes}m{left}s" if left else f"{minutes}m"
    return f"{left}s"


def moment(time: datetime | None) -> str:
    """A point in time."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if time is not None else "unknown"


def named(side: Side) -> str:
    """A revision by name and anchor."""
    return f"{side.revision} (anchor {side.anchor})" if side.anchor else side.revision


def workers(side: Side) -> str:
    """How many workers of a revision can answer."""
    return "size unknown" if side.size is None else f"{side.ready}/{side.size} ready"


def bar(share: float, width: int = 20) -> str:
    """How much of something is done, as a picture."""
    done = round(min(max(share, 0.0), 1.0) * width)
    return f"[{'#' * done}{'.' * (width - done)}]"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines whose columns stand below each other; the last one may be as long as it likes."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def wrapped(lines: Iterable[str], width: int | None, indent: int) -> list[str]:
    """Lines no longer than a terminal's width, what goes on further below set in by so many spaces.

    Args:
        lines: The lines.
        width: In characters; ``None`` where lines may be of any length.
        indent: Spaces.
    """
    if width is None:
        return list(lines)
    room = max(width, indent + 20)
    return [
        piece
        for line in lines
        for piece in (
            textwrap.wrap(
                line,
                room,
                subsequent_indent=" " * indent,
                drop_whitespace=True,
                replace_whitespace=False,
                break_on_hyphens=False,
            )
            or [""]
        )
    ]
