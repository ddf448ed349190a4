"""Tables and a picture of how many updates are caught."""

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerolayer_bench.verdict.experiment import upper_bound
from zerolayer_bench.verdict.power import NONE, SAMPLES, Power, Run

RUN_COLUMNS: Final = ("scene", "kind", "size", "seed", "outcome", "reason", "looks", "samples")
POWER_COLUMNS: Final = (
    "scene",
    "kind",
    "size",
    "updates",
    *(f"caught_by_{most}" for most in SAMPLES),
    "failed",
)
_DRAWN: Final = ("errors", "slower")


def write_tables(runs: Sequence[Run], rows: Sequence[Power], folder: Path) -> None:
    """Writes `runs.csv` with every update, `power.csv` with the counts and `summary.md` with the shares."""
    _write(folder / "runs.csv", RUN_COLUMNS, map(_run_cells, runs))
    _write(folder / "power.csv", POWER_COLUMNS, map(_power_cells, rows))
    (folder / "summary.md").write_text("\n".join([*summary(rows), ""]), encoding="utf-8")


def summary(rows: Sequence[Power]) -> Iterator[str]:
    """Yields a Markdown table: percent of the updates caught by so many samples."""
    head = ["traffic", "harm", "updates", *(f"by {most}" for most in SAMPLES), "by the end"]
    yield _line(head)
    yield _line(["---"] * len(head))
    for row in rows:
        caught = [f"{100 * count / row.updates:.0f} %" for count in row.caught]
        at_most = f" (at most {100 * upper_bound(row.failed, row.updates, 0.99):.1f} %)"
        end = f"{100 * row.failed / row.updates:.0f} %{at_most if row.kind == NONE else ''}"
        yield _line([row.scene, _harm(row), str(row.updates), *caught, end])


def write_picture(rows: Sequence[Power], path: Path) -> None:
    """Draws the share caught above the samples: a column for each traffic, a row for each kind of harm."""
    drawn = [row for row in rows if row.kind in _DRAWN]
    scenes = list(dict.fromkeys(row.scene for row in drawn))
    figure = Figure(figsize=(4.2 * len(scenes), 7), layout="constrained")
    axes = figure.subplots(len(_DRAWN), len(scenes), squeeze=False, sharex=True, sharey=True)
    for (scene, kind), group in groupby(drawn, key=lambda row: (row.scene, row.kind)):
        _draw(axes[_DRAWN.index(kind)][scenes.index(scene)], list(group))
    for column, scene in enumerate(scenes):
        axes[0][column].set_title(scene)
        axes[-1][column].set_xlabel("requests on green")
    for line in axes:
        line[0].set_ylabel("updates rolled back, %")
        line[-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=80)


def _draw(axes: Axes, rows: Sequence[Power]) -> None:
    for row in rows:
        shares = [100 * count / row.updates for count in row.caught]
        axes.plot(SAMPLES, shares, marker=".", label=_harm(row))
    axes.set_xscale("log")
    axes.set_ylim(-3, 103)
    axes.grid(alpha=0.3)


def _harm(row: Power) -> str:
    if row.kind == NONE:
        return "none"
    return f"{100 * row.size:g} % errors" if row.kind == "errors" else f"{row.size:g}x {row.kind}"


def _run_cells(run: Run) -> tuple[str | int | float, ...]:
    ended = run.ended
    return (
        run.scene,
        run.kind,
        run.size,
        run.seed,
        str(ended.outcome),
        str(ended.reason),
        ended.looks,
        ended.samples,
    )


def _power_cells(row: Power) -> tuple[str | int | float, ...]:
    return row.scene, row.kind, row.size, row.updates, *row.caught, row.failed


def _write(path: Path, head: Sequence[str], rows: Iterator[tuple[str | int | float, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
