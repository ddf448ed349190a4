"""What Prometheus is asked about a pool's load, and how its answer is read; no I/O."""

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from zerolayer_operator.api import queries
from zerolayer_operator.observe import worker_metrics as counters
from zerolayer_operator.observe.load import MEAN_S, SPAN_S, STALE_S, STEP_S

ARRIVALS: Final = "arrivals"
BUSY: Final = "busy"
QUEUED: Final = "queued"
FINISHED: Final = "finished"
SERVICE: Final = "service"
SHARE: Final = "share"
"""Rates of the workers' counters per second, summed over workers."""

SLOTS: Final = "slots"
"""Requests that one worker can run at once, the mean over workers."""

PODS: Final = "pods"
"""Workers with a fresh sample."""

READY: Final = "ready"
"""Those of them that can take requests."""

RATED: Final = "rated"
"""Workers with enough samples for rates."""

FIGURES: Final = (ARRIVALS, BUSY, QUEUED, FINISHED, SERVICE, SHARE, SLOTS, PODS, READY, RATED)

_RATES: Final = {
    ARRIVALS: counters.ARRIVALS,
    BUSY: queries.BUSY_SLOT_SECONDS,
    QUEUED: queries.WAITING_REQUEST_SECONDS,
    FINISHED: counters.FINISHED,
    SERVICE: counters.SERVICE,
    SHARE: queries.BUSY_SHARE_SECONDS,
}
_FIGURE: Final = "figure"
_WORKER: Final = "instance, pod"
"""Labels that tell workers apart; two series of one worker, by two Prometheuses or jobs, count once."""


class GarbageError(Exception):
    """An answer that is none to the query."""


class _Row(BaseModel):
    metric: dict[str, str]
    values: Annotated[list[tuple[float, float]], Field(max_length=2 * SPAN_S // STEP_S)]


_ROWS: Final = TypeAdapter(Annotated[list[_Row], Field(max_length=len(FIGURES))])


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """Prometheus' figures about a pool, at all multiples of `STEP_S` seconds within a span.

    Attributes:
        first: The first instant, in seconds since 1970.
        figures: Each of `FIGURES` at every instant: NaN where there is no value, infinity where there is one
            that is no finite number.
    """

    first: int
    figures: Mapping[str, "array[float]"]

    def __len__(self) -> int:
        return len(self.figures[PODS])

    @property
    def end(self) -> int:
        """The last instant."""
        return self.first + (len(self) - 1) * STEP_S

    def at(self, index: int) -> dict[str, float]:
        """The figures that have a value at one of the instants."""
        row = {figure: values[index] for figure, values in self.figures.items()}
        return {figure: value for figure, value in row.items() if not math.isnan(value)}

    def continued(self, newer: "LoadSeries") -> "LoadSeries":
        """Together with a newer series, which counts where both have instants, as long as `SPAN_S` at most.

        Series that leave a gap between them are not joined: the newer one is returned.
        """
        kept = (newer.first - self.first) // STEP_S
        if not 0 <= kept <= len(self):
            return newer
        drop = max(0, kept + len(newer) - SPAN_S // STEP_S - 1)
        figures = {
            figure: self.figures[figure][drop:kept] + newer.figures[figure][max(0, drop - kept) :]
            for figure in FIGURES
        }
        return LoadSeries(self.first + drop * STEP_S, figures)


def load_query(labels: Mapping[str, str]) -> str:
    """One query for all figures, so that they are of one evaluation; each is a series with its name as label.

    Args:
        labels: Labels that the series of a pool's workers have, and no others; values need no escaping.
    """
    selector = "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
    slots = f"{counters.SLOTS}{selector}"
    per_worker = f"max by ({_WORKER}) ({slots})"
    fresh = f"(time() - max by ({_WORKER}) (timestamp({slots})) <= {STALE_S})"
    draining = f"(max by ({_WORKER}) ({counters.DRAINING}{selector}) > 0)"
    rates = {
        figure: f"max by ({_WORKER}) (rate({counter}{selector}[{MEAN_S}s]))"
        for figure, counter in _RATES.items()
    }
    expressions = {figure: f"sum({rate})" for figure, rate in rates.items()}
    expressions |= {
        SLOTS: f"avg({per_worker})",
        PODS: f"count({fresh})",
        READY: f"count({fresh} unless on ({_WORKER}) {draining})",
        RATED: f"count({rates[BUSY]})",
    }
    return " or ".join(
        f'label_replace({expression}, "{_FIGURE}", "{figure}", "", "")'
        for figure, expression in expressions.items()
    )


def read_series(result: object, first: int, end: int) -> LoadSeries:
    """The answer to such a query about a span, whose ends are multiples of `STEP_S` seconds since 1970.

    Raises:
        GarbageError: It is no such answer.
    """
    try:
        rows = _ROWS.validate_python(result)
    except (ValidationError, RecursionError) as error:
        raise GarbageError from error
    found = {row.metric.get(_FIGURE, ""): row.values for row in rows}
    if len(found) < len(rows) or not found.keys() <= set(FIGURES):
        raise GarbageError
    columns = {figure: _column(found.get(figure, []), first, end) for figure in FIGURES}
    return LoadSeries(first, columns)


def _column(values: Iterable[tuple[float, float]], first: int, end: int) -> "array[float]":
    column = array("d", [math.nan]) * ((end - first) // STEP_S + 1)
    for at, value in values:
        if not first <= at <= end:
            raise GarbageError
        column[round((at - first) / STEP_S)] = value if math.isfinite(value) else math.inf
    return column
