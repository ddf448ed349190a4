"""Runs targets of the project's Makefile, as a user does."""

import subprocess

from zerolayer_dev.paths import repo_root


def make(target: str) -> subprocess.CompletedProcess[str]:
    """Runs a target to its end, whatever that is; errors are in what it printed."""
    return subprocess.run(
        ["make", target],
        cwd=repo_root(),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
