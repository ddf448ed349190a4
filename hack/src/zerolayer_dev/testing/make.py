"""Runs targets of the project's Makefile, as a user does."""

import subprocess

from zerolayer_dev.paths import repo_root


def make(target: str, *variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a target, with variables like `OUT=DIR`, to its end; it printed its errors."""
    return subprocess.run(
        ["make", target, *variables],
        cwd=repo_root(),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
