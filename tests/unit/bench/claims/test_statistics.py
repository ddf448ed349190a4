"""Intervals."""

from statistics import mean

import pytest

from zerolayer_bench.claims.statistics import certain_share, over_cells, resampled


@pytest.mark.parametrize(
    ("clean", "failed", "expected"),
    [(29_956, 0, 0.9999), (1000, 0, 0.05 ** (1 / 1000)), (1, 0, 0.05), (95, 5, 0.8977), (0, 10, 0.0)],
)
def test_one_is_sure_of_less_than_was_seen(clean: int, failed: int, expected: float) -> None:
    assert certain_share(clean, failed) == pytest.approx(expected, abs=1e-4)


def test_29_956_clean_runs_are_the_fewest_for_99_99_percent() -> None:
    assert certain_share(29_956, 0) >= 0.9999 > certain_share(29_955, 0)


def test_no_run_says_nothing() -> None:
    with pytest.raises(ValueError, match="no run"):
        certain_share(0, 0)


def test_the_interval_is_of_whole_turns_and_the_same_each_time() -> None:
    found = resampled([1.0, 2.0, 3.0, 4.0], mean)
    assert found == resampled([1.0, 2.0, 3.0, 4.0], mean)
    assert found.value == 2.5
    assert 1.0 <= found.low < 2.0
    assert 3.0 < found.high <= 4.0
    assert resampled([2.0, 2.0], mean).low == resampled([2.0, 2.0], mean).high == 2.0


def test_cells_count_by_their_ratios() -> None:
    found = over_cells([0.5, 2.0])
    assert (found.value, found.low, found.high) == (pytest.approx(1.0), 0.5, 2.0)
