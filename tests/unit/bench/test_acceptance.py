"""What the operator's policy has to be worth, and the sentences about what it isn't."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from zerolayer_bench.autoscaling.acceptance import Verdict, mean_below_pct, misses, verdicts
from zerolayer_bench.autoscaling.experiment import Row
from zerolayer_bench.autoscaling.frontier import Distance
from zerolayer_bench.autoscaling.simulation import Outcome

GOOD = Verdict("t", 90, below_pct=1.2, overload_points=0.0, below_target_pct=0.5, is_multi_day=True)


def row(policy: str, overload: float, below: float, below_target: float, hours: int = 1) -> Row:
    outcome = Outcome(10.0, overload, 0.01, 1.0, 0)
    return Row("t", hours * 3600, 90, policy, outcome, Distance(below, False), Distance(below_target, False))


def rows(hours: int = 1) -> Iterable[Row]:
    yield row("fixed-300s", 0.02, 0.0, -3.0, hours)
    yield row("ours", 0.0215, 1.5, -0.4, hours)
    yield row("target-0.80-ours", 0.5, 9.0, 0.3, hours)
    yield row("target-0.80-60s", 0.5, 9.0, 0.9, hours)


@pytest.mark.parametrize(("hours", "multi_day"), [(47, False), (48, True)])
def test_a_verdict_is_about_the_default_target_and_the_best_one(hours, multi_day) -> None:
    (verdict,) = verdicts(list(rows(hours)))

    assert verdict.below_pct == 1.5
    assert verdict.overload_points == pytest.approx(0.15)
    assert verdict.below_target_pct == 0.3
    assert verdict.is_multi_day is multi_day


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({}, None),
        ({"below_pct": -0.4, "is_multi_day": False}, None),
        ({"below_pct": -0.6, "is_multi_day": False}, "0.60 % above the frontier of fixed windows"),
        ({"overload_points": 0.19}, None),
        ({"overload_points": 0.21}, "0.21 points more overload"),
        ({"below_pct": 0.9}, "0.90 % below .* on average"),
        ({"below_target_pct": -0.1}, "0.10 % above the frontier of windows and targets"),
        ({"below_target_pct": -9.0, "is_multi_day": False}, None),
    ],
)
def test_each_point_that_is_missed_is_a_sentence(changed: Mapping[str, Any], complaint) -> None:
    found = misses([replace(GOOD, **changed)])

    if complaint is None:
        assert not found
    else:
        (sentence,) = found
        assert re.search(complaint, sentence)


def test_no_long_trace_has_no_mean() -> None:
    assert mean_below_pct([Verdict("t", 90, -0.1, 0.0, 0.0, is_multi_day=False)]) is None
