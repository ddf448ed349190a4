"""Runs a long command with a line for each of its steps, and its whole output in a log file."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# buildah and podman print `STEP 3/7: RUN …`, docker's plain progress `#9 [torch 2/4] RUN …`.
_STEP = re.compile(r"(?:\[\d+/\d+\] )?STEP (?P<buildah>.*)|#\d+ (?P<docker>\[.*)")
_SHOWN = 90
_TAIL = 40


class BuildError(RuntimeError):
    """A command of a build failed; the message holds the end of its output."""


def report(text: str) -> None:
    """Print a line of progress; standard output is for results alone."""
    print(text, file=sys.stderr, flush=True)


def step_of(line: str) -> str | None:
    """What to show for a line of a builder's output, or nothing."""
    found = _STEP.match(line)
    return (found["buildah"] or found["docker"]).strip()[:_SHOWN] if found else None


def run(label: str, command: Sequence[str | Path], log: Path) -> None:
    """Run `command`, showing its steps with the seconds since the start.

    Raises:
        BuildError: It ends with another status than 0.
    """
    started = time.monotonic()
    lines: list[str] = []
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as file,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        for line in process.stdout or ():
            file.write(line)
            lines = [*lines[-_TAIL:], line]
            if step := step_of(line):
                report(f"  {label} {time.monotonic() - started:4.0f} s  {step}")
    if process.returncode != 0:
        raise BuildError(f"{label}: {command[0]} failed; {log} has it all\n{''.join(lines)}")
