"""What was told of pools over the last hours, kept in few bytes.

A pool has a ring of rows, one for each `STEP_S` of the clock, made when it is first told of: 24,960 bytes,
and less than 1,000 beside them, so that 500 pools take 13 MB. A row holds what was told last in its step;
steps of which nothing was told stay empty.
"""

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.workqueue import PoolKey

STEP_S: Final = 30
"""Seconds from one row to the next."""

ROWS: Final = 480
"""Rows that are kept of a pool: four hours."""

COLUMNS: Final = (
    "wanted",
    "ready",
    "window_s",
    "floor",
    "hold",
    "utilization",
    "offered_slots",
    "slots",
    "flatness",
    "known",
    "regrets",
    "spent_s",
    "saved_s",
)
"""The fields of `Figures` that a row holds."""

_EMPTY_ROW: Final = array("f", [math.nan]) * len(COLUMNS)


@dataclass(frozen=True, slots=True)
class Series:
    """What is kept of a pool, oldest first.

    Attributes:
        start: The beginning of the first row's step, in seconds since 1970.
        step_s: Seconds from one row to the next.
        columns: For each of `COLUMNS` one value a row, to seven digits; ``None`` where it was not known or
            nothing was told.
    """

    start: int
    step_s: int
    columns: dict[str, list[float | None]]


class History:
    """The last hours of every pool that was told of."""

    def __init__(self) -> None:
        self._pools: dict[PoolKey, _Ring] = {}

    def tell(self, key: PoolKey, figures: Figures) -> None:
        """Keeps what is known of a pool now."""
        ring = self._pools.get(key)
        if ring is None:
            ring = self._pools[key] = _Ring()
        ring.keep(figures)

    def forget(self, key: PoolKey) -> None:
        """Drops a pool; one that was never told of is none."""
        self._pools.pop(key, None)

    def newest(self) -> Iterator[tuple[PoolKey, Figures]]:
        """Yields every pool by name with what was told last."""
        for key in sorted(self._pools):
            if (newest := self._pools[key].newest) is not None:
                yield key, newest

    def newest_of(self, key: PoolKey) -> Figures | None:
        """Returns what was told last of a pool; ``None`` of one that is not known."""
        return self._pools[key].newest if key in self._pools else None

    def series(self, key: PoolKey) -> Series | None:
        """Returns what is kept of a pool; ``None`` of one that is not known."""
        return self._pools[key].series() if key in self._pools else None


class _Ring:
    """Rows of one pool: step number `n` of the clock lies at row `n % ROWS`."""

    __slots__ = ("_first", "_last", "_rows", "newest")

    def __init__(self) -> None:
        self._rows = _EMPTY_ROW * ROWS
        self._first = self._last = 0
        self.newest: Figures | None = None

    def keep(self, figures: Figures) -> None:
        step = int(figures.at // STEP_S)
        if self.newest is None:
            self._first = self._last = step
        self._leave_empty(step)
        self._first = max(min(self._first, step), step - ROWS + 1)
        self._last = step
        self._put(step, array("f", map(_number, (getattr(figures, name) for name in COLUMNS))))
        self.newest = figures

    def _leave_empty(self, step: int) -> None:
        """Empties the rows between the last one and `step`; where the clock was set back, those after it."""
        low, high = sorted((self._last, step))
        for between in range(max(low, high - ROWS) + 1, high + 1):
            self._put(between, _EMPTY_ROW)

    def _put(self, step: int, row: "array[float]") -> None:
        begin = step % ROWS * len(COLUMNS)
        self._rows[begin : begin + len(COLUMNS)] = row

    def series(self) -> Series:
        steps = range(self._first, self._last + 1)
        rows = [step % ROWS * len(COLUMNS) for step in steps]
        return Series(
            start=self._first * STEP_S,
            step_s=STEP_S,
            columns={
                name: [_value(self._rows[begin + offset]) for begin in rows]
                for offset, name in enumerate(COLUMNS)
            },
        )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _value(number: float) -> float | None:
    return float(f"{number:.7g}") if math.isfinite(number) else None
