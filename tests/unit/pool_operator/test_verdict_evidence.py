"""What is kept of a soak: sums, comparisons, and the text that survives the operator."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerolayer_operator.decide.evidence import Histogram, Interval, Side
from zerolayer_operator.decide.verdict import Check, Evidence, Outcome, Terms, judge
from zerolayer_operator.decide.verdict_evidence import beyond, comparisons_on

BOUNDS = (
    *(
        round(digit * decade, 4)
        for decade in (0.001, 0.01, 0.1, 1.0)
        for digit in (1, 1.4, 1.8, 2.5, 3.5, 5, 7)
    ),
    *(10.0, 14.0, 20.0, 30.0, 42.0, 60.0, 120.0, 300.0, 600.0),
)
OTHER = tuple(round(0.002 * 1.4**power, 6) for power in range(26))
TERMS = Terms(min_samples=50)
HUGE = 10**11


@st.composite
def histograms(draw: st.DrawFn, most: int = 60) -> Histogram:
    bounds = draw(st.sampled_from([BOUNDS, BOUNDS, OTHER]))
    if draw(st.booleans()):
        places = draw(st.lists(st.integers(0, len(bounds)), max_size=most))
        return Histogram(bounds, tuple(places.count(place) for place in range(len(bounds) + 1)))
    return draw(st.sampled_from([Histogram(), Histogram(bounds, (0,) * (len(bounds) + 1))]))


@st.composite
def sides(draw: st.DrawFn) -> Side:
    requests = draw(st.integers(0, 80))
    repeats = draw(st.integers(0, 3))
    return Side(
        requests,
        draw(st.integers(0, requests)),
        draw(histograms()),
        draw(histograms()),
        repeats,
        draw(st.integers(0, repeats)),
    )


INTERVALS = st.lists(st.builds(Interval, sides(), sides()), max_size=12)


def evidence_of(intervals: Sequence[Interval], terms: Terms = TERMS) -> Evidence:
    evidence = Evidence()
    for interval in intervals:
        evidence = evidence.add(interval, terms)
    return evidence


@given(INTERVALS)
def test_evidence_survives_as_text(intervals: list[Interval]) -> None:
    evidence = evidence_of(intervals)
    again = Evidence.from_text(evidence.to_text())
    assert again == evidence
    assert judge(again, TERMS) == judge(evidence, TERMS)


@given(INTERVALS, st.integers(0, 12))
def test_an_operator_that_restarts_goes_on_where_it_was(intervals: list[Interval], at: int) -> None:
    resumed = Evidence.from_text(evidence_of(intervals[:at]).to_text())
    for interval in intervals[at:]:
        resumed = resumed.add(interval, TERMS)
    assert resumed == evidence_of(intervals)


def test_the_text_of_months_is_small() -> None:
    full = Histogram(BOUNDS, (HUGE,) * (len(BOUNDS) + 1))
    interval = Interval(Side(HUGE, HUGE, full, full, HUGE, 0), Side(HUGE, 0, full, full, HUGE, 0))
    assert len(evidence_of([interval] * 5).to_text()) <= 4096


GOOD = json.loads(evidence_of([Interval(Side(9, 1), Side(9, 1))]).to_text())


@given(
    st.one_of(
        st.none(), st.text(), st.recursive(st.integers() | st.text() | st.none(), st.lists).map(json.dumps)
    )
)
@example("{}")
@example("[" * 100_000)
@example(json.dumps(GOOD)[:-1])
@example(json.dumps(GOOD | {"v": 2}))
@example(json.dumps(GOOD | {"n": -1}))
@example(json.dumps(GOOD | {"n": True}))
@example(json.dumps(GOOD | {"n": 10**400}))
@example(json.dumps(GOOD | {"t": 1}))
@example(json.dumps(GOOD | {"b": []}))
@example(json.dumps(GOOD | {"p": {"errors": [1, 0.0, 0, 0.5]}}))
@example(json.dumps(GOOD | {"p": {"other": [1, 0.0, 0, 0.5, 0.5, 0.5]}}))
@example(json.dumps(GOOD | {"p": {"errors": [1, 0.0, 0, 0.5, 0.5, float("nan")]}}))
@example(json.dumps(GOOD | {"p": {"errors": [1, 0.0, 0, 0.5, 0.5, 1e308]}}))
@example(json.dumps(GOOD | {"g": [1, 2, [[], []], [[], []], 0, 0]}))
@example(json.dumps(GOOD | {"g": [1, 0, [[], []], [[], []], 1, 2]}))
@example(json.dumps(GOOD | {"g": [1, 0, [[0.1], [1]], [[], []], 0, 0]}))
def test_any_other_text_is_no_evidence(text: str | None) -> None:
    assert Evidence.from_text(text) == Evidence()


def test_what_is_altered_in_the_tests_above_is_evidence_before() -> None:
    assert Evidence.from_text(json.dumps(GOOD)).intervals == 1


@given(INTERVALS.flatmap(lambda items: st.tuples(st.just(items), st.permutations(items))))
def test_the_order_of_intervals_changes_no_sum(both: tuple[list[Interval], list[Interval]]) -> None:
    one, other = (evidence_of([_same_bounds(item) for item in items]) for items in both)
    assert (one.intervals, one.blue, one.green) == (other.intervals, other.blue, other.green)


def _same_bounds(interval: Interval) -> Interval:
    bare = {"first_tokens": Histogram(), "token_gaps": Histogram()}
    return Interval(replace(interval.blue, **bare), replace(interval.green, **bare))


@given(st.permutations([0] * 20 + [4] * 20))
def test_harm_in_half_of_the_intervals_fails_in_any_order(errors: Sequence[int]) -> None:
    terms = replace(TERMS, on=frozenset({Check.ERRORS}))
    evidence = evidence_of([Interval(Side(270), Side(30, bad)) for bad in errors], terms)
    assert evidence.processes["errors"].log_evidence > 0
    assert judge(evidence, terms).outcome is Outcome.FAIL


@given(st.lists(sides(), max_size=30))
def test_sides_that_are_the_same_never_fail(both: list[Side]) -> None:
    evidence = Evidence()
    for item in both:
        same = replace(item, repeats_different=0)
        evidence = evidence.add(Interval(same, same), TERMS)
        assert judge(evidence, TERMS).outcome is not Outcome.FAIL
        assert all(process.log_evidence <= 1e-9 for process in evidence.processes.values())


@given(INTERVALS, st.data())
def test_more_harm_on_green_never_makes_it_less_likely_to_fail(intervals: list[Interval], data: Any) -> None:
    worse = [Interval(item.blue, _worse(item.green, data)) for item in intervals]
    good, bad = evidence_of(intervals), evidence_of(worse)
    for key, process in good.processes.items():
        assert bad.processes[key].log_evidence >= process.log_evidence - 1e-9
    if judge(good, TERMS).outcome is Outcome.FAIL:
        assert judge(bad, TERMS).outcome is Outcome.FAIL


def _worse(side: Side, data: Any) -> Side:
    errors = data.draw(st.integers(side.errors, side.requests))
    steps = data.draw(st.integers(0, 5))
    return replace(
        side,
        errors=errors,
        first_tokens=_later(side.first_tokens, steps),
        token_gaps=_later(side.token_gaps, steps),
    )


def _later(times: Histogram, steps: int) -> Histogram:
    for _ in range(steps if times.counts else 0):
        *rest, last_but_one, last = times.counts
        times = Histogram(times.bounds, (0, *rest, last_but_one + last))
    return times


def test_other_terms_begin_anew() -> None:
    interval = Interval(Side(90, 1), Side(10))
    evidence = evidence_of([interval] * 5)
    assert evidence.add(interval, replace(TERMS, min_samples=7)).intervals == 6
    assert evidence.add(interval, replace(TERMS, slower=2.0)) == evidence_of(
        [interval], replace(TERMS, slower=2.0)
    )


@pytest.mark.parametrize(
    ("on", "count"),
    [
        ({Check.ERRORS}, 1),
        ({Check.FIRST_TOKEN}, 3),
        (set(TERMS.on), 7),
        ({Check.CONSISTENCY}, 0),
        (set(Check), 7),
    ],
)
def test_comparisons_that_share_alpha(on: set[Check], count: int) -> None:
    assert comparisons_on(replace(TERMS, on=frozenset(on))) == count


PAST = Histogram((1.0, 1.5, 2.25, 3.375), (50, 30, 15, 4, 1))


@pytest.mark.parametrize(
    ("past", "quantile", "green", "slower", "expected"),
    [
        (PAST, 0.5, PAST, 1.5, (1.0, 1.5)),
        (PAST, 0.8, PAST, 1.5, (1.5, 2.25)),
        (PAST, 0.95, PAST, 1.5, (2.25, 3.375)),
        (PAST, 0.96, PAST, 1.5, None),
        (PAST, 0.5, PAST, 2.0, (1.0, 2.25)),
        (PAST, 0.5, Histogram((1.0, 1.47, 3.0), (0, 0, 0, 0)), 1.5, (1.0, 1.47)),
        (PAST, 0.999, PAST, 1.5, None),
        (Histogram(), 0.5, PAST, 1.5, None),
        (PAST, 0.5, Histogram(), 1.5, None),
    ],
)
def test_bounds_that_are_compared(
    past: Histogram, quantile: float, green: Histogram, slower: float, expected: tuple[float, float] | None
) -> None:
    assert beyond(past, quantile, green, slower) == expected


def test_workers_with_other_bounds_are_compared_at_the_next_longer_one() -> None:
    blue = Histogram(BOUNDS, tuple(100 if place == 15 else 0 for place in range(len(BOUNDS) + 1)))
    fast = Histogram(OTHER, tuple(10 if place == 12 else 0 for place in range(27)))
    slow = Histogram(OTHER, tuple(10 if place == 18 else 0 for place in range(27)))
    terms = replace(TERMS, on=frozenset({Check.FIRST_TOKEN}))
    for green, outcome in ((fast, Outcome.PASS), (slow, Outcome.FAIL)):
        intervals = [Interval(Side(100, 0, blue), Side(10, 0, green))] * 60
        assert judge(evidence_of(intervals, terms), terms).outcome is outcome


def _all_in(bounds: tuple[float, ...], place: int, count: int) -> Histogram:
    return Histogram(bounds, tuple(count if here == place else 0 for here in range(len(bounds) + 1)))


def test_an_interval_in_which_blues_bounds_change_compares_nothing() -> None:
    terms = replace(TERMS, on=frozenset({Check.FIRST_TOKEN}))
    green = Side(10, 0, _all_in(BOUNDS, 15, 10))
    before = [Interval(Side(100, 0, _all_in(BOUNDS, 14, 100)), green)] * 3
    changed = Interval(Side(100, 0, _all_in(OTHER, 14, 100)), green)
    assert evidence_of([*before, changed], terms).processes == evidence_of(before, terms).processes
    assert evidence_of([*before, changed, changed], terms).processes["firstToken.p50"].intervals == 3


def test_more_gaps_in_each_answer_are_no_more_evidence() -> None:
    terms = replace(TERMS, on=frozenset({Check.TOKEN_GAPS}))

    def gaps(blue: int, green: int) -> float:
        """With so many gaps in each answer, and one of 16 on green longer than all of blue's."""
        slow = Histogram(
            BOUNDS, tuple(map({12: 30 * green, 20: 2 * green}.get, range(len(BOUNDS) + 1), [0] * 99))
        )
        both = Interval(
            Side(320, 0, token_gaps=_all_in(BOUNDS, 12, 320 * blue)), Side(32, 0, token_gaps=slow)
        )
        return evidence_of([both] * 4, terms).processes["tokenGaps.p95"].log_evidence

    assert gaps(30, 1) == pytest.approx(gaps(1, 1)) == pytest.approx(gaps(1, 30))
    assert gaps(1, 1) > 0
