"""Stages of a longer run: each announced, timed, and listed in the end."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from zerolayer_dev.testing.tables import table


class Stages:
    """Times stages and prints their names as they begin."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._seconds: list[tuple[str, float]] = []

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Announces a stage and takes its time, also where it fails."""
        line = f"==> {title}"
        print("\n" + (f"\033[1m{line}\033[0m" if sys.stdout.isatty() else line), flush=True)
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds.append((title, time.monotonic() - began))

    @property
    def current(self) -> str:
        """The stage that ended last, or where it failed."""
        return self._seconds[-1][0] if self._seconds else "the start"

    def summary(self) -> list[str]:
        """Returns a table of the stages with seconds, and their total."""
        rows = [(title, f"{seconds:8.1f}") for title, seconds in self._seconds]
        return table(("stage", " seconds"), [*rows, ("total", f"{time.monotonic() - self._began:8.1f}")])
