"""Generates the Grafana dashboard that the chart brings, with Grafana's own models of its format."""

from itertools import count
from pathlib import Path
from string import ascii_uppercase
from typing import Final

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import BigValueGraphMode, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from zerolayer_dev.generate.panels import ROWS, Panel

FILE = "charts/zerolayer/files/dashboard.json"
_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_EVERY: Final = VariableOption(text="All", value="$__all")
_STAT_HEIGHT, _HEIGHT = 4, 8


def render(root: Path) -> dict[str, str]:
    """Returns the dashboard by its path below `root`."""
    del root
    made = (
        build.Dashboard("ZeroLayer")
        .uid("zerolayer")
        .description(
            "Pools of LLM inference workers: how they follow their load, and what clients see of it."
        )
        .tags(["zerolayer"])
        .time("now-6h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_variable("namespace", "zero_layer_slots", "namespace"))
        .with_variable(_variable("pool", 'zero_layer_slots{namespace=~"$namespace"}', "zerolayer_dev_pool"))
    )
    numbers = count(1)
    for title, panels in ROWS.items():
        made.with_row(build.Row(title).id(next(numbers)))
        for panel in panels:
            made.with_panel(_panel(panel).id(next(numbers)))
    return {FILE: JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"}


def _variable(name: str, series: str, label: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(name.capitalize())
        .datasource(_SOURCE)
        .query(f"label_values({series}, {label})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        # A pool without workers has no series to be found by, and belongs to all.
        .all_value(".+")
        .current(_EVERY)
    )


def _panel(panel: Panel) -> stat.Panel | timeseries.Panel:
    made = _number() if panel.stat else _picture()
    made.title(panel.title).description(panel.description).datasource(_SOURCE).unit(panel.unit)
    if panel.low is not None:
        made.min(panel.low)
    if panel.top is not None:
        made.max(panel.top)
    if panel.bars is not None:
        made.thresholds(_thresholds(*panel.bars))
    for name, (legend, expression) in zip(ascii_uppercase, panel.queries.items(), strict=False):
        made.with_target(prometheus.Dataquery().ref_id(name).expr(expression).legend_format(legend).range())
    return made.span(panel.span).height(_STAT_HEIGHT if panel.stat else _HEIGHT)


def _number() -> stat.Panel:
    latest = common.ReduceDataOptions().calcs(["lastNotNull"])
    return stat.Panel().reduce_options(latest).graph_mode(BigValueGraphMode.AREA)


def _picture() -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
    )
    return timeseries.Panel().legend(legend).fill_opacity(10)


def _thresholds(warning: float, alarm: float) -> build.ThresholdsConfig:
    steps = [Threshold(None, "green"), Threshold(warning, "orange"), Threshold(alarm, "red")]
    return build.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
