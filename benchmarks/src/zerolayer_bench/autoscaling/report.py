"""Tables and pictures of what the policies cost and what they were worth."""

import csv
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerolayer_bench.autoscaling.experiment import Row
from zerolayer_bench.autoscaling.frontier import Point, lower_hull

COLUMNS = (
    "trace", "cold_start_s", "policy", "replica_hours", "overload_share", "late_share", "p99_wait_s",
    "regrets", "below_frontier_pct",
)  # fmt: skip
_MARKERS = {"ours": "*", "knative-kpa": "v", "keda-defaults": "s", "aibrix-apa": "D", "clairvoyant": "P"}


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Writes `summary.csv`."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            found = row.outcome
            writer.writerow(
                (
                    row.trace, row.cold_start_s, row.policy, f"{found.replica_hours:.3f}",
                    f"{found.overload_share:.6f}", f"{found.late_share:.6f}", f"{found.p99_wait_s:.3f}",
                    found.regrets, f"{row.below_window_pct:.3f}",
                )
            )  # fmt: skip


def write_pictures(rows: Iterable[Row], folder: Path) -> None:
    """Draws `frontier-<trace>.png`, one panel for each cold start."""
    for trace, of_trace in groupby(rows, key=lambda row: row.trace):
        panels = [list(panel) for _, panel in groupby(of_trace, key=lambda row: row.cold_start_s)]
        figure = Figure(figsize=(5 * len(panels), 4.5), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, panel)
        figure.suptitle(trace)
        figure.savefig(folder / f"frontier-{trace}.png", dpi=110)


def _draw(axes: Axes, panel: Sequence[Row]) -> None:
    points = {row.policy: Point(row.outcome.late_share, row.outcome.replica_hours) for row in panel}
    fixed = {name: point for name, point in points.items() if name.startswith("fixed-")}
    windows = {name: point for name, point in fixed.items() if "target" not in name}
    for label, members, style in (
        ("fixed windows", windows, "o-"),
        ("windows and targets", fixed, ":"),
    ):
        hull = lower_hull(members.values())
        axes.plot([100 * point.late for point in hull], [point.hours for point in hull], style, label=label)
    for name, marker in _MARKERS.items():
        if name in points:
            axes.plot(100 * points[name].late, points[name].hours, marker, label=name)
    axes.set(
        xlabel="requests late by more than 1 s, %",
        ylabel="replica-hours",
        title=f"cold start {panel[0].cold_start_s} s",
        xscale="symlog",
    )
    axes.legend(fontsize="small")
