"""Showing a pool again and again: on a terminal in place, elsewhere line by line."""

import json
import shutil
import sys
from datetime import UTC, datetime
from typing import Final, Protocol

from zerolayer_kubectl.pool import Pool
from zerolayer_kubectl.screen import document, line, screen

PROGRAM: Final = "kubectl zerolayer"

_TOP_LEFT: Final = "\x1b[H"
_CLEAR: Final = "\x1b[2J"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def width() -> int | None:
    """Columns of the terminal; ``None`` where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def say(*lines: str) -> None:
    """Prints lines, at once."""
    print(*lines, sep="\n", flush=True)


def complain(message: str) -> None:
    """Tells what is wrong."""
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)


class Display(Protocol):
    """Shows a pool as often as it is asked to."""

    tick_s: float

    def show(self, pool: Pool) -> None:
        """Shows the pool as it is now."""
        ...

    def trouble(self, message: str) -> None:
        """Tells what keeps changes from being seen for a while."""
        ...


class Screen:
    """Draws the whole screen anew."""

    tick_s = 1.0

    def __init__(self) -> None:
        self._trouble: tuple[Pool | None, str] | None = None
        self._last: Pool | None = None
        say(_CLEAR)

    def show(self, pool: Pool) -> None:
        """Draws over what stands there, which flickers less than an empty screen in between."""
        if self._trouble is not None and self._trouble[0] != pool:
            self._trouble = None
        self._last = pool
        lines = [*screen(pool, now(), width()), *([self._trouble[1]] if self._trouble else [])]
        drawn = "".join(f"{item}{_CLEAR_LINE}\n" for item in lines)
        print(f"{_TOP_LEFT}{drawn}{_CLEAR_BELOW}", end="", flush=True)

    def trouble(self, message: str) -> None:
        """Stands below until the next change comes through."""
        self._trouble = (self._last, f"(no changes come through: {message})")


class Lines:
    """Prints one line for each change."""

    tick_s = 15.0

    def __init__(self) -> None:
        self._last = ""

    def show(self, pool: Pool) -> None:
        """Prints what changed, with the time."""
        told = line(pool)
        if told != self._last:
            self._last = told
            say(f"{now():%H:%M:%S} {told}")

    def trouble(self, message: str) -> None:
        """Goes to the other output."""
        complain(message)


class Documents:
    """Prints a JSON document on a line of its own for each change."""

    tick_s = 15.0

    def __init__(self) -> None:
        self._last: Pool | None = None

    def show(self, pool: Pool) -> None:
        """Prints the pool, if it is not as it was."""
        if pool != self._last:
            self._last = pool
            say(json.dumps(document(pool, now())))

    def trouble(self, message: str) -> None:
        """Goes to the other output."""
        complain(message)


def chosen(output: str | None) -> Display:
    """What fits the output."""
    if output == "json":
        return Documents()
    return Screen() if sys.stdout.isatty() else Lines()
