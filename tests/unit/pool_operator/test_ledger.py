"""What a tuned window saved and cost, counted beside a fixed one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.decide.hpa_replay import Behavior, Bounds
from zerolayer_operator.decide.latency import UNWEIGHTED, Weight
from zerolayer_operator.decide.ledger import LONGEST_GAP_S, Ledger, Terms
from zerolayer_operator.observe.autoscaler import Metric

BOUNDS = Bounds(1, 20)


def recorded(sizes, usages, *, seconds: float = 15.0, cold_start_s: float = 60.0) -> Ledger:
    """A ledger that looked at these sizes, with that much to do for each, in replicas."""
    ledger = Ledger()
    for look, (size, usage) in enumerate(zip(sizes, usages, strict=True)):
        metric = None if usage is None else Metric(round(1000 * usage), 1000)
        ledger.record(1000.0 + look * seconds, size, metric, Terms(BOUNDS, Behavior(), cold_start_s))
    return ledger


def test_a_pool_that_shrinks_at_once_saves_what_the_fixed_window_would_have_kept() -> None:
    sizes = [10] * 5 + [4] * 40
    ledger = recorded(sizes, [10.0] * 4 + [4.0] * 41)

    # Ten are asked for until second 1045, so the fixed one shrinks at 1345; the pool did at 1075.
    assert ledger.saved_s == (10 - 4) * (1345 - 1075)
    assert ledger.spent_s == (10 * 5 + 4 * 39) * 15
    assert ledger.regrets == 0


def test_a_pool_that_is_as_large_as_a_fixed_window_makes_it_saves_nothing() -> None:
    assert recorded([5] * 100, [5.0] * 100).saved_s == 0


def test_a_hold_that_keeps_more_costs() -> None:
    assert recorded([8] * 101, [4.0] * 101).saved_s < 0


@pytest.mark.parametrize("usage", [None, 2.0])
def test_a_pool_without_workers_saves_nothing_before_it_has_some(usage) -> None:
    ledger = recorded([0, 0, 2, 2, 2], [None, None, usage, usage, usage])

    assert (ledger.saved_s, ledger.spent_s) == (0, 2 * 2 * 15)


@pytest.mark.parametrize(
    ("sizes", "regrets"),
    [
        ([4, 4, 3, 4], 1),
        ([4, 3, 4, 3, 4], 2),
        ([4, 3, 3, 3, 3, 4], 1),
        ([4, 3, 3, 3, 3, 3, 4], 0),
        ([3, 4, 5], 0),
        ([5, 4, 3], 0),
        ([4, 3, 4, 5], 2),
    ],
)
def test_growth_within_a_cold_start_after_shrinking_is_a_regret(sizes, regrets) -> None:
    assert recorded(sizes, [3.0] * len(sizes)).regrets == regrets


def test_time_in_which_nobody_looked_is_left_out() -> None:
    ledger = recorded([10, 2, 10, 2], [1.0] * 4, seconds=LONGEST_GAP_S + 1)

    assert (ledger.saved_s, ledger.spent_s, ledger.regrets) == (0, 0, 0)


def test_without_a_metric_the_fixed_window_keeps_its_size() -> None:
    ledger = recorded([10] + [4] * 41, [None] * 42)

    assert ledger.saved_s == (10 - 4) * 40 * 15


@pytest.mark.parametrize("usage", [None, 1.0])
def test_a_pool_that_is_made_or_sleeps_saves_nothing_by_that(usage: float | None) -> None:
    """Its first look comes before its Deployment; an autoscaler takes over from whoever sized it last."""
    sizes = [0, 0] + [1] * 30 + [0] * 30 + [1] * 30
    assert recorded(sizes, [usage if size else None for size in sizes]).saved_s == 0


LATE, SOON, NOT_KNOWN = Weight(1.5), Weight(1.0), Weight(proven=False)


def weighted(sizes: list[int], weights: list[Weight]) -> Ledger:
    """A ledger that looked at these sizes every 15 s; the fixed window keeps the first one."""
    ledger = Ledger()
    for look, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
        ledger.record(1000.0 + look * 15, size, None, Terms(BOUNDS, Behavior(), 60.0), weight)
    return ledger


@pytest.mark.parametrize(
    ("weights", "penalty_s", "saved_s"),
    [
        pytest.param([UNWEIGHTED] * 5, None, 3 * 90, id="nobody waited"),
        pytest.param([SOON] * 5, 0, 3 * 90, id="all soon enough"),
        pytest.param([LATE] * 5, 0.5 * 15 * (10 + 4 + 4 + 4), 3 * 90, id="all late"),
        pytest.param([LATE, UNWEIGHTED, UNWEIGHTED, LATE, SOON], 0.5 * 15 * 4, 3 * 90, id="one late"),
        pytest.param([NOT_KNOWN] * 5, None, 0, id="not known"),
        pytest.param(
            [LATE, LATE, NOT_KNOWN, LATE, LATE], 0.5 * 15 * (10 + 4 + 4), 2 * 90, id="one not known"
        ),
    ],
)
def test_time_in_which_requests_waited_weighs_more(weights, penalty_s: float | None, saved_s: float) -> None:
    """Each look's weight is that of the time since the one before."""
    ledger = weighted([10, 4, 4, 4, 4], weights)
    assert ledger.spent_s == 15 * (10 + 4 + 4 + 4)
    assert ledger.penalty_s == penalty_s
    assert ledger.saved_s == saved_s


def test_what_costs_more_than_a_fixed_window_does_so_whether_or_not_requests_waited() -> None:
    assert weighted([4, 8, 8], [NOT_KNOWN] * 3).saved_s == (4 - 8) * 15


@given(st.lists(st.tuples(st.integers(1, 20), st.one_of(st.none(), st.floats(0, 50))), max_size=60))
def test_what_is_spent_is_what_the_pool_was(looks) -> None:
    ledger = recorded([size for size, _ in looks], [usage for _, usage in looks])

    assert ledger.spent_s == sum(size for size, _ in looks[:-1]) * 15
    assert ledger.saved_s + ledger.spent_s >= BOUNDS.minimum * 15 * max(0, len(looks) - 1)
