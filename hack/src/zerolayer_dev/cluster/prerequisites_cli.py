"""`python -m zerolayer_dev prerequisites`: what this machine lacks, and its installation."""

from __future__ import annotations

from typing import Annotated

import typer

from zerolayer_dev.cluster import prerequisites

app = typer.Typer()


@app.callback(invoke_without_command=True)
def check(
    install: Annotated[
        bool, typer.Option(help="Install what apt-get can provide, where run as root.")
    ] = False,
) -> None:
    """Say what the cluster and the image builds lack here; fail when it is something."""
    lacking = prerequisites.missing(prerequisites.EVERYTHING, prerequisites.look())
    if install:
        prerequisites.install(lacking)
        lacking = prerequisites.missing(prerequisites.EVERYTHING, prerequisites.look())
    if lacking:
        typer.echo(prerequisites.explain(lacking), err=True)
        raise typer.Exit(1)
    typer.echo("nothing is missing")
