"""Runs programs whose failure has to be explained to a person."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class CommandError(RuntimeError):
    """A program failed.

    Attributes:
        status: its exit status.
        stderr: what it said.
    """

    def __init__(self, command: Sequence[str], status: int, stderr: str) -> None:
        super().__init__(f"{shlex.join(command)}: status {status}: {stderr.strip()}")
        self.status = status
        self.stderr = stderr


def output(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout_s: float = 60,
) -> str:
    """Run a program and return what it prints to stdout.

    Args:
        command: program and arguments.
        environment: all of its environment; None hands down ours.
        stdin: what it reads; None is nothing.
        timeout_s: seconds after which it is ended.

    Raises:
        CommandError: it failed.
        subprocess.TimeoutExpired: it took too long.
    """
    result = subprocess.run(
        command,
        env=environment,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if result.returncode != 0:
        raise CommandError(command, result.returncode, result.stderr or result.stdout)
    return result.stdout
