"""The command line `python -m zerolayer_dev`: one sub-command per tool.

Only the module of the sub-command that was asked for is imported: `cluster`
starts as fast without torch, buildah or the test plugins as with them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

import typer


class Tool(NamedTuple):
    """A sub-command: the module whose `app` implements it, and its one-line help."""

    module: str
    help: str


TOOLS = {
    "cluster": Tool("zerolayer_dev.cluster.cli", "Start, stop and use the local Kubernetes."),
    "prerequisites": Tool("zerolayer_dev.cluster.prerequisites_cli", "Check what this machine lacks."),
    "images": Tool("zerolayer_dev.images.cli", "Build the container images."),
    "plugin": Tool("zerolayer_dev.plugin", "Write the plugin `kubectl zerolayer` as one file."),
    "models": Tool("zerolayer_dev.models.cli", "Make the demo's model folder."),
    "demo": Tool("zerolayer_dev.demo.cli", "Show a pool's whole life on the local Kubernetes."),
    "vendored": Tool("zerolayer_dev.vendored", "Check or renew the copies of npm packages' files."),
    "generate": Tool("zerolayer_dev.generate.cli", "Write the generated files of the repository."),
}


def build_app(arguments: list[str]) -> typer.Typer:
    """Return the command line with the asked-for tool loaded and the others as bare names.

    Args:
        arguments: the process's arguments without the program's name.
    """
    app = typer.Typer(help="Developer tools of ZeroLayer.", no_args_is_help=True)
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, tool in TOOLS.items():
        tool_app = import_module(tool.module).app if name == wanted else typer.Typer()
        app.add_typer(tool_app, name=name, help=tool.help)
    return app


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    build_app(arguments)(arguments, prog_name="python -m zerolayer_dev")
