"""`python -m zerolayer_dev images`: build the container images."""

from __future__ import annotations

from typing import Annotated

import typer

from zerolayer_dev.cluster.prerequisites import MissingPrerequisitesError
from zerolayer_dev.images.build import build as build_images
from zerolayer_dev.images.engines import choose
from zerolayer_dev.images.progress import BuildError, report
from zerolayer_dev.images.specs import IMAGES
from zerolayer_dev.models.builtin import ModelToolError

app = typer.Typer(help="Build the container images.", no_args_is_help=True)


@app.callback()
def images() -> None:
    """Build the container images."""


@app.command()
def build(
    names: Annotated[list[str] | None, typer.Argument(help="Images to build.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Build every image of the CPU demo.")] = False,
) -> None:
    """Build images whose inputs changed, and print the path of each one's archive."""
    chosen = [name for name, spec in IMAGES.items() if spec.by_default] if every else (names or [])
    unknown = [name for name in chosen if name not in IMAGES]
    if unknown or not chosen:
        report(f"name images out of {', '.join(IMAGES)}, or --all; not {', '.join(unknown) or 'nothing'}")
        raise typer.Exit(2)
    try:
        for archive in build_images(chosen, choose()):
            print(archive)
    except (BuildError, MissingPrerequisitesError, ModelToolError) as error:
        report(str(error))
        raise typer.Exit(1) from error
