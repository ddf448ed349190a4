"""Tables and pictures of what the policies cost and what they were worth."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerolayer_bench.autoscaling import against_default
from zerolayer_bench.autoscaling.acceptance import Verdict, mean_below_pct, verdicts
from zerolayer_bench.autoscaling.experiment import CLAIRVOYANT, OURS, Row
from zerolayer_bench.autoscaling.frontier import Point, lower_hull

COLUMNS = (
    "trace", "cold_start_s", "policy", "replica_hours", "overload_share", "late_share", "p99_wait_s",
    "regrets", "below_frontier_pct",
)  # fmt: skip
DISTANCE_COLUMNS = ("trace", "cold_start_s", "policy", "below_window_pct", "below_target_pct", "outside")
_SHOWN = (
    "fixed-300s", "fixed-180s", "fixed-120s", "fixed-60s", "fixed-0s", "knative-kpa", "keda-defaults",
    "aibrix-apa", OURS, CLAIRVOYANT,
)  # fmt: skip
_HEAD = [
    "trace", "cold start", "policy", "replica-hours", "overload", "late", "p99 wait", "regrets",
    "below windows", "below windows and targets",
]  # fmt: skip
_FOOT = "below: replica-hours saved against the frontier at the same late share; * beyond its ends"
_VERDICT_HEAD = [
    "trace", "cold start", "ours below windows", "overload above 300 s, points",
    "ours at its best target below windows and targets",
]  # fmt: skip
_MARKERS = {"knative-kpa": "v", "keda-defaults": "s", "aibrix-apa": "D", CLAIRVOYANT: "P", OURS: "*"}


def write_tables(rows: Sequence[Row], folder: Path) -> None:
    """Writes `summary.csv`, and `distances.csv` with both frontiers and who lies beyond their ends."""
    with (folder / "summary.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_figures(row) for row in rows)
    with (folder / "distances.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(DISTANCE_COLUMNS)
        for row in rows:
            below = (f"{row.window.below_pct:.3f}", f"{row.target.below_pct:.3f}")
            writer.writerow((row.trace, row.cold_start_s, row.policy, *below, int(row.window.outside)))


def _figures(row: Row) -> tuple[str | int, ...]:
    found = row.outcome
    return (
        row.trace, row.cold_start_s, row.policy, f"{found.replica_hours:.3f}", f"{found.overload_share:.6f}",
        f"{found.late_share:.6f}", f"{found.p99_wait_s:.3f}", found.regrets, f"{row.window.below_pct:.3f}",
    )  # fmt: skip


def write_page(rows: Sequence[Row], path: Path) -> None:
    """Writes a Markdown page: ours on each trace, against the default, and the policies with a name."""
    found = list(verdicts(rows))
    page = [_row(_VERDICT_HEAD), _row(["---"] * len(_VERDICT_HEAD)), *map(_verdict_row, found)]
    mean = mean_below_pct(found)
    if mean is not None:
        page += [
            "",
            f"Below the frontier of fixed windows on average over traces of several days: {mean:.2f} %.",
        ]
    page += ["", "Ours against a fixed window of 300 s, the default of an autoscaler:", ""]
    page += against_default.table(against_default.of_rows(rows))
    page += ["", _row(_HEAD), _row(["---"] * len(_HEAD)), *map(_row, _cells(rows)), "", _FOOT, ""]
    path.write_text("\n".join(page), encoding="utf-8")


def _verdict_row(verdict: Verdict) -> str:
    return _row(
        [
            verdict.trace, f"{verdict.cold_start_s} s", f"{verdict.below_pct:+.2f} %",
            f"{verdict.overload_points:+.2f}", f"{verdict.below_target_pct:+.2f} %",
        ]
    )  # fmt: skip


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yields a table for people: the policies that have a name of their own, at each cold start."""
    cells = [_HEAD, *_cells(rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield _FOOT


def _cells(rows: Sequence[Row]) -> Iterator[list[str]]:
    for row in rows:
        found = row.outcome
        if row.policy in _SHOWN:
            yield [
                row.trace, f"{row.cold_start_s} s", row.policy, f"{found.replica_hours:.2f}",
                f"{100 * found.overload_share:.2f} %", f"{100 * found.late_share:.2f} %",
                f"{found.p99_wait_s:.2f} s", str(found.regrets),
                f"{row.window.below_pct:+.2f} %{'*' if row.window.outside else ''}",
                f"{row.target.below_pct:+.2f} %",
            ]  # fmt: skip


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write_picture(rows: Sequence[Row], folder: Path) -> None:
    """Draws `frontier-<trace>.png` of one trace: a column for each cold start, late share above overload."""
    panels = [list(panel) for _, panel in groupby(rows, key=lambda row: row.cold_start_s)]
    figure = Figure(figsize=(4.6 * len(panels), 7.5), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    for column, panel in enumerate(panels):
        _draw(axes[0][column], panel, _late)
        _draw(axes[1][column], panel, _overload)
        axes[0][column].set_title(f"cold start {panel[0].cold_start_s} s")
        axes[0][column].set_xlabel("requests late by more than 1 s, %")
        axes[1][column].set_xlabel("time overloaded, %")
    for row in axes:
        row[0].set_ylabel("replica-hours")
    axes[0][-1].legend(fontsize="small")
    figure.suptitle(rows[0].trace)
    figure.savefig(folder / f"frontier-{rows[0].trace}.png", dpi=80)


def _late(row: Row) -> Point:
    return row.point


def _overload(row: Row) -> Point:
    return Point(row.outcome.overload_share, row.outcome.replica_hours)


def _draw(axes: Axes, panel: Sequence[Row], place: Callable[[Row], Point]) -> None:
    points = {row.policy: place(row) for row in panel}
    windows = _windows(points, "fixed-")
    targets = windows | _windows(points, "target-")
    ours = {name: point for name, point in points.items() if name.endswith(OURS)}
    axes.plot(*_line(lower_hull(windows.values())), "o-", color="C0", label="fixed windows")
    axes.plot(*_line(lower_hull(targets.values())), ".--", color="C7", label="fixed windows and targets")
    axes.plot(*_line(sorted(ours.values())), ":", color="C3", label="ours at other targets")
    for name, marker in _MARKERS.items():
        if name in points:
            size = 14 if name == OURS else 7
            color = "C3" if name == OURS else None
            axes.plot(*_line([points[name]]), marker, markersize=size, color=color, label=name)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)


def _windows(points: Mapping[str, Point], begin: str) -> dict[str, Point]:
    return {name: point for name, point in points.items() if name.startswith(begin) and name.endswith("0s")}


def _line(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [100 * point.late for point in points], [point.hours for point in points]
