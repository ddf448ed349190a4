"""What a histogram of times to the first token tells."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from zerolayer_operator.observe.first_tokens import Buckets, Waits, grown, quantile, together, waits
from zerolayer_operator.observe.load import Counted

INF = float("inf")
BOUNDS = (0.1, 0.5, 1.0, 2.5, 5.0)
TIMES = st.lists(st.floats(0, 10), max_size=60)
IDLE = Counted(60, 0, 0, 0, 0, 0)


def kept(times: list[float]) -> dict[float, float]:
    """The histogram of some times, as a worker keeps it."""
    registry = CollectorRegistry()
    histogram = Histogram("t", "Times.", buckets=BOUNDS, registry=registry)
    for time in times:
        histogram.observe(time)
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {float(item.labels["le"]): item.value for item in samples if item.name == "t_bucket"}


@pytest.mark.parametrize(
    ("buckets", "p99"),
    [
        ({}, None),
        ({0.5: 0, 1: 0, INF: 0}, None),
        ({0.5: 100, 1: 100, INF: 100}, 0.495),
        ({0.5: 0, 1: 100, INF: 100}, 0.995),
        ({0.5: 99, 1: 100, INF: 100}, 0.5),
        ({0.5: 98, 1: 100, INF: 100}, 0.75),
        ({0.5: 0, 1: 1, INF: 1}, 0.995),
        ({0.5: 0, 1: 98, INF: 100}, 1),
        ({INF: 3}, 0),
        ({INF: 100, 1: 100, 0.5: 98}, 0.75),
    ],
)
def test_p99_is_what_prometheus_makes_of_it(buckets: Buckets, p99: float | None) -> None:
    found = quantile(buckets, 0.99)
    assert found is None if p99 is None else found == pytest.approx(p99)


@given(TIMES.filter(bool))
def test_p99_is_in_the_bucket_in_which_it_lies(times: list[float]) -> None:
    found = quantile(kept(times), 0.99)
    assert found is not None
    ordered = sorted(times)
    exact = next(time for rank, time in enumerate(ordered, 1) if rank >= 0.99 * len(ordered))
    if exact > BOUNDS[-1]:
        assert found == BOUNDS[-1]
    else:
        (upper,) = [high for low, high in pairwise((-1.0, *BOUNDS)) if low < exact <= high]
        lower = max((bound for bound in BOUNDS if bound < upper), default=0.0)
        assert lower <= found <= upper


@given(TIMES.filter(bool), st.sampled_from(BOUNDS))
def test_a_target_that_is_a_bound_is_judged_exactly(times: list[float], target: float) -> None:
    """But for the last one, beyond which nothing is told apart."""
    found = quantile(kept(times), 0.99)
    assert found is not None
    late = sum(time > target for time in times) > 0.01 * len(times)
    assert (found > target) == (late and target < BOUNDS[-1])


@given(TIMES, TIMES)
def test_growth_and_sum_are_those_of_the_requests(first: list[float], second: list[float]) -> None:
    assert together([kept(first), kept(second)]) == kept(first + second)
    assert grown(kept(first + second), kept(first)) == kept(second)


def test_bounds_that_not_all_workers_have_are_not_told_apart() -> None:
    assert together([{0.5: 1, 1: 2, INF: 3}, {}, {1: 4, 2: 5, INF: 6}]) == {1: 6, INF: 9}
    assert together([]) == together([{}, {}]) == {}


@pytest.mark.parametrize(
    ("times", "arrivals", "queued_s", "expected"),
    [
        pytest.param([0.05] * 100, 100, 0, Waits(pytest.approx(0.099)), id="requests"),
        pytest.param([], 0, 0, Waits(None), id="nobody asked"),
        pytest.param([], 3, 0, None, id="no token yet"),
        pytest.param([], 0, 60, None, id="a queue that stands still"),
        pytest.param([0.05], 0, 0, Waits(pytest.approx(0.099)), id="of requests that came before"),
    ],
)
def test_what_is_not_known_is_no_zero(times, arrivals: float, queued_s: float, expected: object) -> None:
    counted = Counted(60, arrivals, 0, queued_s, 0, 0)
    assert waits(kept(times), counted) == expected
    assert waits({}, IDLE) == Waits(None)
