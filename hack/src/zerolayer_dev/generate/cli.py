"""The command line of the generators."""

import difflib
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from zerolayer_dev.generate import promises
from zerolayer_dev.paths import repo_root

# Each module has `render(root) -> {path below root: text}`; they are imported when they are needed.
GENERATORS = (
    "zerolayer_dev.generate.crd",
    "zerolayer_dev.generate.crd_docs",
    "zerolayer_dev.generate.chart",
    "zerolayer_dev.generate.chart_docs",
    "zerolayer_dev.generate.dashboard",
    "zerolayer_dev.generate.promises",
    "zerolayer_dev.images.requirements",
    "zerolayer_bench.claims.page",
)

app = typer.Typer()


@app.callback(invoke_without_command=True)
def generate(
    *, check: Annotated[bool, typer.Option(help="Change nothing; fail where a file is stale.")] = False
) -> None:
    """Write the generated files, or say which of them differ from what they are made of."""
    root = repo_root()
    if not check:
        promises.record(root)
    files = render_all(root)
    stale = {name: diff for name, text in files.items() if (diff := _diff(root / name, text))}
    for name, diff in stale.items():
        if check:
            typer.echo(diff)
        else:
            typer.echo(f"wrote {name}")
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(files[name], encoding="utf-8")
    if check and stale:
        typer.echo(f"stale: {', '.join(stale)}; run `make generate` and commit the result", err=True)
        raise typer.Exit(1)
    if not stale:
        typer.echo(f"{len(files)} generated files are up to date")


def render_all(root: Path) -> dict[str, str]:
    """Returns the text of every generated file by its path below `root`."""
    files: dict[str, str] = {}
    for name in GENERATORS:
        files |= import_module(name).render(root)
    return files


def _diff(path: Path, text: str) -> str:
    present = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        present.splitlines(keepends=True), text.splitlines(keepends=True), str(path), f"{path} (generated)"
    )
    return "".join(lines)
