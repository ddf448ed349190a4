"""What the page remembers of pools."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.page.history import COLUMNS, ROWS, STEP_S, History
from zerolayer_operator.workqueue import PoolKey

KEY = PoolKey("team", "chat")
FIGURES = Figures(at=1_800_000_000.0, wanted=3, ready=2, window_s=120, floor=1)

counts = st.integers(0, 100_000)
amounts = st.none() | st.floats(0, 1e12)
told = st.builds(
    Figures,
    at=st.floats(0, 2 * ROWS * STEP_S) | st.floats(0, 1e10),
    wanted=counts,
    ready=counts,
    window_s=st.integers(0, 3600),
    floor=counts,
    hold=st.none() | counts,
    utilization=st.none() | st.floats(0, 1),
    offered_slots=amounts,
    slots=amounts,
    flatness=st.none() | st.floats(0, 1),
    known=st.booleans(),
    regrets=counts,
    spent_s=st.floats(0, 1e12),
    saved_s=st.floats(-1e12, 1e12),
)


def as_kept(figures: Figures | None) -> list[object]:
    """One row as the history ought to give it."""
    if figures is None:
        return [None] * len(COLUMNS)
    values = (getattr(figures, name) for name in COLUMNS)
    return [None if value is None else pytest.approx(float(value), rel=1e-6) for value in values]


@given(st.lists(told, min_size=1, max_size=40))
@example([replace(FIGURES, at=step * STEP_S) for step in (5, 6, 4)])
@example([replace(FIGURES, at=step * STEP_S) for step in (5, 5 + ROWS, 5)])
@example([replace(FIGURES, at=step * STEP_S) for step in (5, 5 + ROWS - 1)])
@example([replace(FIGURES, at=step * STEP_S) for step in (5, 6, 6 + ROWS)])
@example([replace(FIGURES, at=step * STEP_S) for step in (5 + 3 * ROWS, 5 + 2 * ROWS, 5)])
def test_it_gives_back_what_a_plain_list_would(stream: list[Figures]) -> None:
    history, plain = History(), dict[int, Figures]()
    for figures in stream:
        history.tell(KEY, figures)
        now = int(figures.at // STEP_S)
        plain = {step: kept for step, kept in plain.items() if now - ROWS < step < now} | {now: figures}

    series = history.series(KEY)

    assert series is not None
    rows = list(zip(*(series.columns[name] for name in COLUMNS), strict=True))
    assert len(rows) <= ROWS
    # Empty rows before the first one that is kept say nothing.
    assert max(plain) == series.start // STEP_S + len(rows) - 1
    assert min(plain) >= series.start // STEP_S
    first = series.start // STEP_S
    assert [list(row) for row in rows] == [as_kept(plain.get(first + place)) for place in range(len(rows))]


def test_the_newest_figures_are_kept_as_they_were_told() -> None:
    history = History()
    later = replace(FIGURES, at=FIGURES.at + 1.25, utilization=1 / 3)
    for figures in (FIGURES, later):
        history.tell(KEY, figures)

    assert history.newest_of(KEY) == later
    assert list(history.newest()) == [(KEY, later)]


def test_pools_are_apart_and_listed_by_name() -> None:
    history = History()
    for name in ("b", "a", "c"):
        history.tell(PoolKey("team", name), replace(FIGURES, regrets=ord(name)))
    history.forget(PoolKey("team", "c"))

    assert [(key.name, figures.regrets) for key, figures in history.newest()] == [("a", 97), ("b", 98)]


def test_nothing_is_known_of_a_pool_that_was_forgotten_or_never_told() -> None:
    history = History()
    history.tell(KEY, FIGURES)
    for key in (KEY, PoolKey("team", "never")):
        history.forget(key)

        assert history.series(key) is None
        assert history.newest_of(key) is None


def test_500_pools_stay_within_15_megabytes() -> None:
    keys = [PoolKey("team", f"pool-{number}") for number in range(500)]
    tracemalloc.start()
    try:
        history = History()
        for place, key in enumerate(keys):
            for step in range(3):
                at = FIGURES.at + STEP_S * step
                history.tell(key, replace(FIGURES, at=at, utilization=place / 7, offered_slots=step / 3))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held / len(keys) < 24_960 + 1_000
    assert held < 15_000_000
