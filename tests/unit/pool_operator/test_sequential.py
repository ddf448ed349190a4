"""The always-valid comparison: what its evidence is worth when green is no worse, computed exactly."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from zerolayer_operator.decide.sequential import Counts, Process, Rules, after

RULES = Rules(alternatives=(3.0, 10.0, 40.0), tolerance=0.005, cluster=1.0, cap=math.inf)


def one(ratio: float, **changes: float) -> Rules:
    return replace(RULES, alternatives=(ratio,), **changes)


def e_value(green: int, of: int, blue: int, blue_of: int, rules: Rules) -> float:
    """Of one interval that is the first: its logs are weighted with a half."""
    process = after(Process(), Counts(green, of, blue, blue_of, 0, 0), rules)
    return 2 * math.exp(process.logs[0])


def expectation(of: int, blue_of: int, share: float, beyond: float, rules: Rules, together: int = 1) -> float:
    """Over all outcomes of binomials, or of binomials of clusters in which all are bad or none."""
    clusters, blue_clusters = of // together, blue_of // together
    greens = binom.pmf(range(clusters + 1), clusters, share + beyond)
    blues = binom.pmf(range(blue_clusters + 1), blue_clusters, share)
    return math.fsum(
        greens[a] * blues[b] * e_value(a * together, of, b * together, blue_of, rules)
        for a, b in itertools.product(range(clusters + 1), range(blue_clusters + 1))
    )


@pytest.mark.parametrize("ratio", [1.2, 3.0, 40.0])
@pytest.mark.parametrize(("of", "blue_of"), [(1, 1), (5, 45), (30, 30), (40, 5)])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_evidence_is_worth_no_more_than_the_bet_if_green_is_no_worse(
    ratio: float, of: int, blue_of: int, share: float, tolerance: float
) -> None:
    assert expectation(of, blue_of, share, tolerance, one(ratio, tolerance=tolerance)) <= 1 + 1e-9


@pytest.mark.parametrize("ratio", [1.2, 10.0])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_so_it_is_if_whole_batches_share_a_fate(ratio: float, share: float) -> None:
    assert expectation(24, 96, share, 0.0, one(ratio, tolerance=0.0, cluster=8.0), together=8) <= 1 + 1e-9


def test_batches_that_are_taken_for_single_requests_would_be_worth_more() -> None:
    assert expectation(24, 96, 0.02, 0.0, one(10.0, tolerance=0.0), together=8) > 5


def test_over_many_looks_few_ever_reach_what_is_needed() -> None:
    random = np.random.default_rng(1)
    needed, reached = math.log(1 / 0.05), 0
    for _ in range(400):
        process = Process()
        for green, blue, share in zip(
            random.random(150), random.random(150), random.uniform(0, 0.1, 150), strict=True
        ):
            counts = Counts(int(binom.ppf(green, 20, share)), 20, int(binom.ppf(blue, 80, share)), 80, 4, 80)
            process = after(process, counts, replace(RULES, tolerance=0.0))
            if process.log_evidence >= needed:
                reached += 1
                break
    assert reached <= 0.05 * 400


@given(
    of=st.integers(1, 200),
    blue_of=st.integers(1, 2000),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    cluster=st.floats(1, 50),
    cap=st.floats(0.1, 5),
)
def test_more_bad_ones_on_green_and_fewer_on_blue_never_speak_for_green(
    of: int, blue_of: int, shares: tuple[float, float, float], cluster: float, cap: float
) -> None:
    rules = replace(RULES, cluster=cluster, cap=cap)
    fewer, more = sorted(round(share * of) for share in shares[:2])
    blue = round(shares[2] * blue_of)

    def evidence(bad: int, blue_bad: int) -> float:
        return after(Process(), Counts(bad, of, blue_bad, blue_of, 0, 0), rules).log_evidence

    assert evidence(fewer, blue) <= evidence(more, blue) + 1e-12
    assert evidence(more, blue) <= evidence(more, blue // 2) + 1e-12


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), max_size=40), st.floats(1, 20))
def test_sides_with_equal_shares_are_no_evidence(intervals: list[tuple[int, int]], cluster: float) -> None:
    process = Process()
    for bad, good in intervals:
        process = after(
            process, Counts(bad, bad + good, bad, bad + good, 0, 0), replace(RULES, cluster=cluster)
        )
    assert process.log_evidence <= 1e-9


def test_an_interval_adds_no_more_than_the_cap() -> None:
    process, rules = Process(), replace(RULES, cap=1.0)
    for looks in range(1, 30):
        process = after(process, Counts(500, 500, 0, 5000, 0, 0), rules)
        assert process.log_evidence <= looks + 1e-9


@pytest.mark.parametrize(("of", "blue_of"), [(0, 10), (10, 0), (0, 0)])
def test_an_interval_without_one_side_is_none(of: int, blue_of: int) -> None:
    process = Process(3, (0.1, 0.2, 0.3), 2.0, 3)
    assert after(process, Counts(0, of, 0, blue_of, 0, 0), RULES) == process


def test_harm_that_begins_after_hours_is_found_in_minutes() -> None:
    process, rules = Process(), replace(RULES, cap=1.25)
    for _ in range(1440):
        process = after(process, Counts(0, 30, 0, 270, 0, 1000), rules)
    looks = 0
    while process.log_evidence < math.log(140):
        looks += 1
        process = after(process, Counts(3, 30, 0, 270, 0, 1000), rules)
    assert looks <= 25


def test_a_blue_that_varies_more_than_chance_allows_for_larger_clusters() -> None:
    calm, rough = Process(), Process()
    for turn in range(50):
        past = (50 * turn + 50, 1000 * turn + 1000)
        calm = after(calm, Counts(5, 100, 47 + 6 * (turn % 2), 1000, *past), RULES)
        rough = after(rough, Counts(5, 100, 100 * (turn % 2), 1000, *past), RULES)
    assert calm.cluster(2.0) == 2.0
    assert rough.cluster(2.0) == pytest.approx(2500 / 50 / 0.95, rel=0.3)


def test_what_a_request_stands_for_counts_once() -> None:
    single = after(Process(), Counts(3, 30, 3, 270, 0, 0), RULES)
    gaps = after(Process(), Counts(120, 1200, 120, 10800, 0, 0, green_each=40.0, blue_each=40.0), RULES)
    assert gaps.log_evidence == pytest.approx(single.log_evidence)
