"""`python -m zerolayer_dev plugin`: the plugin `kubectl zerolayer` as one file, to be copied anywhere.

It has no dependencies, so that a Python is all it needs.
"""

from __future__ import annotations

import shutil
import tempfile
import zipapp
from pathlib import Path
from typing import Annotated

import typer

from zerolayer_dev.paths import repo_root

PROGRAM = "kubectl-zerolayer"
"""kubectl finds it by this name on the PATH."""

_SOURCES = Path("plugin", "src")
_START = """\
import sys

if sys.version_info < (3, 11):
    sys.exit("kubectl zerolayer: it needs Python 3.11 or later; python3 is %d.%d here" % sys.version_info[:2])

from zerolayer_kubectl.cli import run

run()
"""

app = typer.Typer(help="Write the plugin `kubectl zerolayer` as one file.")


@app.callback(invoke_without_command=True)
def plugin(
    to: Annotated[Path, typer.Option(help="Folder for it, best one on the PATH.")] = Path("dist"),
) -> None:
    """Write the program and print where it lies."""
    print(write(to.expanduser()))


def write(folder: Path) -> Path:
    """Writes the program into a folder, which is made where it is missing, and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    with tempfile.TemporaryDirectory() as staged:
        shutil.copytree(
            repo_root() / _SOURCES, staged, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
        Path(staged, "__main__.py").write_text(_START, encoding="utf-8")
        zipapp.create_archive(staged, program, interpreter="/usr/bin/env python3", compressed=True)
    program.chmod(0o755)
    return program
