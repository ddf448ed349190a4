"""`python -m zerolayer_dev models`: make the demo's model if it is missing, print where it lies."""

from __future__ import annotations

import sys

import typer

from zerolayer_dev.models.builtin import ModelToolError, model_dir

app = typer.Typer(help="Make the demo's model folder.")


@app.callback(invoke_without_command=True)
def models() -> None:
    """Fetch and convert the demo's model unless the cache holds it, and print its folder."""
    try:
        print(model_dir())
    except ModelToolError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from error
