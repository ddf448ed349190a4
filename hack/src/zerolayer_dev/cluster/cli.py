"""`python -m zerolayer_dev cluster`: start, stop and use the local Kubernetes."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from zerolayer_dev.cluster import api, binaries
from zerolayer_dev.cluster.clients import Clients
from zerolayer_dev.cluster.commands import CommandError
from zerolayer_dev.cluster.layout import Size
from zerolayer_dev.cluster.prerequisites import MissingPrerequisitesError

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Option(help="Name of the cluster; several may run beside each other.")]


@contextmanager
def _explained() -> Iterator[None]:
    """Print what a person can act on without a traceback."""
    try:
        yield
    except (api.ClusterError, api.UnsupportedError, MissingPrerequisitesError, CommandError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


@app.command()
def up(
    name: Name = api.DEFAULT_NAME,
    size: Annotated[Size, typer.Option(help="control-plane runs no pods.")] = Size.NODE,
) -> None:
    """Start a cluster and wait until it is ready; does nothing where it runs."""
    started = time.monotonic()
    with _explained():
        cluster = api.up(name, size)
        typer.echo(f"cluster {cluster.name} ({size}) is up after {time.monotonic() - started:.1f} s")
        typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(name: Name = api.DEFAULT_NAME) -> None:
    """End a cluster and remove everything it left, after a crash too; images stay cached."""
    with _explained():
        api.down(name)
        typer.echo(f"cluster {name} is down")


@app.command()
def load(archives: list[Path], name: Name = api.DEFAULT_NAME) -> None:
    """Load OCI archives into the node's image store; skips what is there."""
    with _explained():
        cluster = api.find(name)
        for archive in archives:
            started = time.monotonic()
            loaded = cluster.load_image(archive)
            took = f"loaded in {time.monotonic() - started:.1f} s" if loaded else "already there"
            typer.echo(f"{archive}: {took}")


@app.command()
def kubectl(arguments: list[str], name: Name = api.DEFAULT_NAME) -> None:
    """Become kubectl for a cluster: `cluster kubectl -- get pods -A`."""
    with _explained():
        clients = Clients(api.find(name).kubeconfig)
        program = str(clients.programs["kubectl"])
    sys.stdout.flush()
    os.execve(program, [program, *arguments], clients.environment)  # noqa: S606 - no shell is the point


@app.command()
def kubeconfig(name: Name = api.DEFAULT_NAME) -> None:
    """Print the path of a cluster's kubeconfig."""
    with _explained():
        typer.echo(str(api.find(name).kubeconfig))


@app.command(name="list")
def list_clusters() -> None:
    """List the local clusters that run."""
    from zerolayer_dev.cluster.launch import running  # noqa: PLC0415 - only here

    for record in running():
        typer.echo(f"{record.name}\t{record.size}\t{record.addresses.api_url}\t{record.state.kubeconfig}")


@app.command()
def build(size: Annotated[Size, typer.Option(help="For which size.")] = Size.NODE) -> None:
    """Build the programs a cluster needs, without starting one."""
    names = [*binaries.CONTROL_PLANE, *binaries.CLIENTS]
    if size is Size.NODE:
        names += [*binaries.NODE, *binaries.ADDONS]
    with _explained():
        for program, path in binaries.ensure(names).items():
            typer.echo(f"{program}\t{path}")
