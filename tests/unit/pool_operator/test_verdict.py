"""The verdict on a canary: each check, what it says, and what follows from all of them."""

import math
from bisect import bisect_left
from dataclasses import replace

import pytest

from zerolayer_operator.decide.evidence import Golden, Histogram, Interval, QueryResult, Side
from zerolayer_operator.decide.verdict import (
    Check,
    Evidence,
    Outcome,
    Reason,
    State,
    Terms,
    Verdict,
    judge,
    too_thin,
)

BOUNDS = tuple(round(0.001 * 1.5**power, 6) for power in range(28))
TERMS = Terms(min_samples=300)
GOLDEN_TERMS = replace(TERMS, on=TERMS.on | {Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY})
GOOD_GOLDEN = Golden(expected=50, right=48, blue_right=3, kept=50, similarity=0.996, threshold=0.98)


def times(middle_s: float, count: int) -> Histogram:
    """Evenly spread from half to twice the middle on a logarithmic scale."""
    counts = [0] * (len(BOUNDS) + 1)
    for index in range(count):
        counts[bisect_left(BOUNDS, middle_s * 4 ** ((index + 0.5) / count - 0.5))] += 1
    return Histogram(BOUNDS, tuple(counts))


def side(requests: int, errors: int = 0, slower: float = 1.0, gaps: float = 1.0, different: int = 0) -> Side:
    return Side(
        requests, errors, times(0.2 * slower, requests), times(0.02 * gaps, 20 * requests), 2, different
    )


def soak(green: Side, intervals: int = 40, blue: Side | None = None, terms: Terms = TERMS) -> Evidence:
    evidence = Evidence()
    for _ in range(intervals):
        evidence = evidence.add(Interval(side(180) if blue is None else blue, green), terms)
    return evidence


GOLDEN_ALONE = Terms(min_samples=0, on=frozenset({Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY}))


def states(verdict: Verdict) -> dict[str, State]:
    return {check.name: check.state for check in verdict.checks}


def detail(verdict: Verdict, name: str) -> str:
    return next(check.detail for check in verdict.checks if check.name == name)


def test_green_as_good_as_blue_passes() -> None:
    verdict = judge(soak(side(20)), TERMS)
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, Reason.NO_WORSE)
    assert verdict.message == "no worse than blue over 800 requests in 4 checks"
    assert states(verdict) == {
        "errors": State.OK,
        "firstToken": State.OK,
        "tokenGaps": State.OK,
        "consistency": State.OK,
        "goldenAnswers": State.OFF,
        "goldenSimilarity": State.OFF,
        "dds": State.OFF,
    }


@pytest.mark.parametrize(
    ("green", "reason"),
    [
        (side(20, errors=1), Reason.ERROR_RATE_HIGHER),
        (side(20, slower=3), Reason.FIRST_TOKEN_SLOWER),
        (side(20, gaps=3), Reason.TOKENS_SLOWER),
        (side(20, different=1), Reason.NOT_DETERMINISTIC),
    ],
)
def test_harm_fails_for_its_own_reason(green: Side, reason: Reason) -> None:
    verdict = judge(soak(green), TERMS)
    assert (verdict.outcome, verdict.reason) == (Outcome.FAIL, reason)
    assert [check.reason for check in verdict.checks if check.state is State.FAILED] == [reason]


@pytest.mark.parametrize(
    "green", [side(20, slower=1.3), side(20, gaps=1.3), side(20, slower=0.1), side(20, gaps=0.1)]
)
def test_a_little_slower_or_faster_passes(green: Side) -> None:
    assert judge(soak(green, 400), TERMS).outcome is Outcome.PASS


def test_a_rate_within_the_tolerance_passes() -> None:
    evidence = Evidence()
    for index in range(400):
        green = side(100, errors=int(index % 2 == 0))
        evidence = evidence.add(Interval(side(900, errors=1), green), TERMS)
    assert judge(evidence, TERMS).outcome is Outcome.PASS


def test_no_verdict_rests_on_too_few_requests() -> None:
    verdict = judge(soak(side(3, errors=3, slower=9), 10), TERMS)
    assert (verdict.outcome, verdict.reason) == (Outcome.UNDECIDED, Reason.TOO_FEW_SAMPLES)
    assert verdict.message == "30 of the 300 requests on green that a verdict needs"
    assert verdict.samples == 30


def test_one_different_answer_fails_at_once() -> None:
    verdict = judge(soak(side(1, different=1), 1), TERMS)
    assert (verdict.outcome, verdict.reason) == (Outcome.FAIL, Reason.NOT_DETERMINISTIC)
    assert verdict.message == (
        "1 of 2 deterministic requests got another answer when asked again on green, 0 of 2 on blue"
    )


@pytest.mark.parametrize(
    ("green", "blue", "name"),
    [
        (replace(side(20), repeats=0), None, "consistency"),
        (replace(side(20), first_tokens=Histogram()), None, "firstToken"),
        (replace(side(20), token_gaps=Histogram(BOUNDS, (0,) * 29)), None, "tokenGaps"),
        (side(20), replace(side(180), first_tokens=Histogram()), "firstToken"),
        (side(20), replace(side(180), requests=0), "errors"),
        (replace(side(20), first_tokens=times(0.2, 2)), None, "firstToken"),
        (replace(side(20), first_tokens=Histogram((0.1,), (0, 20))), None, "firstToken"),
    ],
)
def test_no_data_in_a_check_that_is_on_is_no_pass(green: Side, blue: Side | None, name: str) -> None:
    verdict = judge(soak(green, blue=blue), TERMS)
    assert (verdict.outcome, verdict.reason) == (Outcome.UNDECIDED, Reason.NO_DATA)
    assert states(verdict)[name] is State.NO_DATA
    without = replace(TERMS, on=TERMS.on - {Check(name)})
    assert judge(soak(green, blue=blue, terms=without), without).outcome is Outcome.PASS


def test_intervals_that_only_one_side_had_compare_nothing() -> None:
    evidence = Evidence()
    for index in range(80):
        both = (side(180), Side()) if index % 2 else (Side(), side(20))
        evidence = evidence.add(Interval(*both), TERMS)
    verdict = judge(evidence, TERMS)
    assert (verdict.outcome, verdict.reason) == (Outcome.UNDECIDED, Reason.NO_DATA)
    assert detail(verdict, "errors") == "requests: in no interval on both sides"


def test_nothing_at_all_is_no_pass_even_where_no_sample_is_asked_for() -> None:
    assert judge(Evidence(), replace(TERMS, min_samples=0)).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("golden", "outcome", "reason"),
    [
        (GOOD_GOLDEN, Outcome.PASS, Reason.NO_WORSE),
        (None, Outcome.UNDECIDED, Reason.NO_DATA),
        (Golden(), Outcome.UNDECIDED, Reason.NO_DATA),
        (replace(GOOD_GOLDEN, right=45), Outcome.PASS, Reason.NO_WORSE),
        (replace(GOOD_GOLDEN, right=44), Outcome.FAIL, Reason.WRONG_ANSWERS),
        (replace(GOOD_GOLDEN, similarity=0.979), Outcome.FAIL, Reason.ANSWERS_DRIFTED),
        (replace(GOOD_GOLDEN, similarity=None), Outcome.UNDECIDED, Reason.NO_DATA),
        (replace(GOOD_GOLDEN, similarity=math.nan), Outcome.UNDECIDED, Reason.NO_DATA),
        (replace(GOOD_GOLDEN, kept=0, similarity=None), Outcome.PASS, Reason.NO_WORSE),
        (replace(GOOD_GOLDEN, expected=0, right=0), Outcome.PASS, Reason.NO_WORSE),
    ],
)
def test_golden_set(golden: Golden | None, outcome: Outcome, reason: Reason) -> None:
    verdict = judge(soak(side(20), terms=GOLDEN_TERMS), GOLDEN_TERMS, golden)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_a_pass_without_a_single_request_names_what_it_rests_on() -> None:
    verdict = judge(Evidence(), GOLDEN_ALONE, GOOD_GOLDEN)
    assert verdict.message == (
        "no worse than blue, without requests of users: goldenAnswers, goldenSimilarity"
    )


def test_wrong_golden_answers_fail_without_a_single_request() -> None:
    verdict = judge(Evidence(), GOLDEN_TERMS, replace(GOOD_GOLDEN, right=20))
    assert (verdict.outcome, verdict.reason) == (Outcome.FAIL, Reason.WRONG_ANSWERS)
    assert verdict.message == "20 of 50 golden answers as expected on green, 3 on blue; 90% are required"


@pytest.mark.parametrize(
    ("results", "outcome", "reason"),
    [
        ([QueryResult("cost", True, "3 at most 5")], Outcome.PASS, Reason.NO_WORSE),
        ([QueryResult("cost", False, "7 at most 5")], Outcome.FAIL, Reason.QUERY_FAILED),
        ([QueryResult("cost", None, "no value")], Outcome.UNDECIDED, Reason.NO_DATA),
        ([], Outcome.UNDECIDED, Reason.NO_DATA),
        (
            [QueryResult("other", False, "not asked for"), QueryResult("cost", True)],
            Outcome.PASS,
            Reason.NO_WORSE,
        ),
    ],
)
def test_queries(results: list[QueryResult], outcome: Outcome, reason: Reason) -> None:
    terms = replace(TERMS, queries=("cost",))
    verdict = judge(soak(side(20)), terms, queries=results)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.checks[-1].name == "query/cost"


def test_a_query_fails_nothing_before_there_are_samples() -> None:
    terms = replace(TERMS, queries=("cost",))
    verdict = judge(soak(side(20), 2), terms, queries=[QueryResult("cost", False)])
    assert verdict.reason is Reason.TOO_FEW_SAMPLES


def test_names_of_checks_fit_into_a_status() -> None:
    terms = replace(TERMS, queries=("q" * 63,))
    assert len(judge(Evidence(), terms).checks[-1].name) == 63


def test_checks_that_are_off_are_not_asked() -> None:
    terms = replace(TERMS, on=frozenset({Check.CONSISTENCY}))
    verdict = judge(soak(side(20, errors=20, slower=9), terms=terms), terms)
    assert verdict.outcome is Outcome.PASS
    assert states(verdict)["errors"] is State.OFF


def test_all_that_failed_is_told() -> None:
    verdict = judge(soak(side(20, errors=2, slower=3)), TERMS)
    assert verdict.reason is Reason.ERROR_RATE_HIGHER
    first, second = verdict.message.split("; ")
    assert first.startswith(
        "error rate 10 % (95 %: 8.1 to 12) of 800 on green against 0 % (95 %: 0 to 0.053) of 7200 on blue in "
        "the same time (likelihood ratio "
    )
    assert first.endswith(", needs 140)")
    assert second.startswith("time to the first token: p")


@pytest.mark.parametrize(
    ("requests", "soaked_s", "thin"),
    [
        (0, 0, False),
        (0, 3599, False),
        (0, 3600, True),
        (299, 3600, True),
        (300, 3600, False),
        (299, 9000, True),
    ],
)
def test_traffic_was_too_thin_where_the_soak_ends_short_of_samples(
    requests: int, soaked_s: float, thin: bool
) -> None:
    evidence = Evidence(green=Side(requests))
    assert too_thin(TERMS, evidence, soaked_s, 3600) is thin
