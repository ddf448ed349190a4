"""What Prometheus is asked about load, and how its answers are read."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.prometheus_answers import FLAT, result
from zerolayer_operator.observe.load import SPAN_S, STEP_S
from zerolayer_operator.observe.load_query import FIGURES, GarbageError, LoadSeries, load_query, read_series

END = 1_800_000_000
FIRST = END - 4 * STEP_S


def test_one_query_names_every_figure_and_every_series_by_its_workers_labels() -> None:
    query = load_query({"namespace": "ns", "zerolayer_dev_pool": "p"})
    selector = '{namespace="ns",zerolayer_dev_pool="p"}'
    assert query.count('"figure"') == len(FIGURES)
    assert query.count("zero_layer_") == query.count(selector) > len(FIGURES)


def test_an_answer_is_read_at_every_instant() -> None:
    series = read_series(result(FIRST, END), FIRST, END)
    assert (series.first, series.end, len(series)) == (FIRST, END, 5)
    assert series.at(0) == series.at(4) == FLAT


def test_what_is_absent_and_what_is_no_number_are_kept_apart() -> None:
    def of(figure: str, at: int) -> Any:
        if figure == "busy":
            return {FIRST: "NaN", FIRST + STEP_S: "-Inf", FIRST + 2 * STEP_S: None}.get(at, 1.5)
        return FLAT[figure]

    series = read_series(result(FIRST, END, of), FIRST, END)
    assert [series.at(index).get("busy") for index in range(5)] == [math.inf, math.inf, None, 1.5, 1.5]


def test_an_empty_answer_is_one() -> None:
    series = read_series([], FIRST, END)
    assert [series.at(index) for index in range(5)] == [{}] * 5


ROW = result(FIRST, END)[0]


@pytest.mark.parametrize(
    "garbage",
    [
        None,
        {},
        "text",
        [1],
        [{"metric": {}}],
        [{"metric": {"figure": "arrivals"}, "values": [[FIRST]]}],
        [{"metric": {"figure": "arrivals"}, "values": [[FIRST, "many"]]}],
        [{"metric": {"figure": "arrivals"}, "values": [["NaN", "1"]]}],
        [{"metric": {"figure": "arrivals"}, "values": [[END + STEP_S, "1"]]}],
        [{"metric": {"figure": "arrivals"}, "values": [[FIRST - STEP_S, "1"]]}],
        [{"metric": {"figure": "pod-1"}, "values": []}],
        [{"metric": {"figure": "arrivals", "pod": 7}, "values": []}],
        [ROW, ROW],
        [ROW] * 1000,
        [{**ROW, "values": ROW["values"] * 1000}],
    ],
)
def test_garbage_is_told_from_an_answer(garbage: object) -> None:
    with pytest.raises(GarbageError):
        read_series(garbage, FIRST, END)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "metric": st.fixed_dictionaries({"figure": st.sampled_from([*FIGURES, "x"])}),
            "values": st.lists(
                st.tuples(
                    st.sampled_from([FIRST, FIRST + STEP_S, END, 0]),
                    st.floats().map(str) | st.text(max_size=5),
                ),
                max_size=6,
            ),
        }
    )
)


@given(JSON | ROWS)
def test_anything_is_an_answer_or_garbage(anything: object) -> None:
    try:
        series = read_series(anything, FIRST, END)
    except GarbageError:
        return
    assert len(series) == 5


def series(first: int, end: int, busy: float = 4.0) -> LoadSeries:
    return read_series(
        result(first, end, lambda figure, _at: busy if figure == "busy" else FLAT[figure]), first, end
    )


def test_a_newer_answer_goes_on_from_an_older_one() -> None:
    joined = series(FIRST, END, busy=1.0).continued(series(END - STEP_S, END + STEP_S, busy=2.0))
    assert (joined.first, joined.end) == (FIRST, END + STEP_S)
    assert list(joined.figures["busy"]) == [1, 1, 1, 2, 2, 2]


def test_an_hour_is_kept() -> None:
    hour = series(END - SPAN_S, END, busy=1.0)
    joined = hour.continued(series(END - 5 * STEP_S, END + 2 * STEP_S, busy=2.0))
    assert (joined.first, joined.end) == (END - SPAN_S + 2 * STEP_S, END + 2 * STEP_S)
    assert list(joined.figures["busy"]).count(2.0) == 8
    assert hour.continued(hour).figures == hour.figures
    later = series(END + STEP_S, END + STEP_S + SPAN_S, busy=3.0)
    assert hour.continued(later).figures == later.figures


@pytest.mark.parametrize("shift", [-10 * STEP_S, 6 * STEP_S, 1000 * STEP_S])
def test_answers_with_a_gap_between_them_are_not_joined(shift: int) -> None:
    newer = series(FIRST + shift, END + shift)
    assert series(FIRST, END).continued(newer) is newer
