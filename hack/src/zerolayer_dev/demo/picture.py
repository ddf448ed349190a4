"""Draws an update: who gets the requests, who is there to answer them, and what became of them."""

from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.demo.timeline import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#4c72b0", "#2a9d5c", "#c44e52", "#8172b3", "#937860")
_STEPS = {
    "Prepare": "#f2efe6",
    "Soak": "#e3eefa",
    "AwaitPromotion": "#efe3fa",
    "Promote": "#e0f4e6",
    "Retain": "#eef7ea",
    "RollBack": "#fae3e3",
}


def draw(series: Series, names: dict[str, str], path: Path) -> None:
    """Writes the picture.

    Args:
        series: what was seen.
        names: of revisions, for the legend.
        path: of the PNG file, whose folder is made.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import, and of the bench group

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    weights, ready, rates = figure.subplots(3, 1, sharex=True)
    for place, revision in enumerate(series.revisions):
        style = {"color": _COLOURS[place % len(_COLOURS)], "label": names.get(revision, revision)}
        weights.step(series.seconds, series.weights[revision], where="post", **style)
        ready.step(series.seconds, series.ready[revision], where="post", **style)
        rates.step(series.bins, series.rates[revision], where="mid", **style)
    rates.plot(
        series.errors, [0] * len(series.errors), "x", color="black", label=f"failed: {len(series.errors)}"
    )
    for axes in (weights, ready, rates):
        _shade(axes, series)
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    _label(weights, series)
    weights.set_ylabel("weight, %")
    ready.set_ylabel("ready workers")
    rates.set_ylabel("answers a second")
    rates.set_xlabel("seconds")
    rates.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _shade(axes: "Axes", series: Series) -> None:
    for span in series.spans:
        axes.axvspan(span.begin, span.end, color=_STEPS.get(span.step, "#eeeeee"), zorder=0)
    for mark in series.marks:
        axes.axvline(mark.at, color="#555555", linestyle=":", linewidth=1)


def _label(axes: "Axes", series: Series) -> None:
    """Names steps above the axes, and what happened inside."""
    axes.set_ylim(0, 130)
    across = axes.get_xaxis_transform()
    for span in series.spans:
        middle = (span.begin + span.end) / 2
        axes.text(middle, 1.02, span.step, transform=across, ha="center", fontsize="x-small", rotation=30)
    for place, mark in enumerate(series.marks):
        axes.text(mark.at + 1, 120 - 11 * (place % 2), mark.text, fontsize="x-small", va="center")
