"""What the workers of two revisions have counted, as evidence."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.decide.canary_sides import Counted, histogram, interval, repeats, side
from zerolayer_operator.decide.evidence import Histogram, Interval, Side
from zerolayer_operator.decide.verdict import Evidence
from zerolayer_operator.observe.answers import AnswerCounts

INF = float("inf")
BOUNDS = (0.1, 1.0, INF)


def counts(
    answered: int = 0, failed: int = 0, times: Sequence[int] = (0, 0, 0), same: int = 0, different: int = 0
):
    """Counts whose times lie in three buckets, cumulative as workers tell them."""
    total, buckets = 0, {}
    for bound, count in zip(BOUNDS, times, strict=True):
        total += count
        buckets[bound] = float(total)
    return AnswerCounts(answered, failed, buckets, dict(buckets), same, different)


def times(*each: int) -> Histogram:
    return Histogram((0.1, 1.0), each)


def blue(value: AnswerCounts) -> Counted:
    return Counted("blue", value)


def green(value: AnswerCounts) -> Counted:
    return Counted("green", value)


def test_side_counts_requests_and_the_failed_ones_among_them() -> None:
    assert side(counts(7, 2, (1, 2, 3), 4, 1)) == Side(9, 2, times(1, 2, 3), times(1, 2, 3), 5, 1)


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ({}, Histogram()),
        ({0.1: 1, 1.0: 3, INF: 6}, Histogram((0.1, 1.0), (1, 2, 3))),
        ({INF: 6, 0.1: 1, 1.0: 3}, Histogram((0.1, 1.0), (1, 2, 3))),
        ({0.1: 1, 1.0: 3}, Histogram((0.1, 1.0), (1, 2, 0))),
        ({INF: 6}, Histogram((), (6,))),
        ({0.1: 5, 1.0: 3, INF: 6}, Histogram((0.1, 1.0), (5, 0, 3))),
    ],
    ids=["nothing", "in order", "in any order", "no last bucket", "no bound", "not cumulative"],
)
def test_buckets_hold_what_those_below_do_not(buckets, expected: Histogram) -> None:
    assert histogram(buckets) == expected


def test_both_sides_are_of_the_same_time() -> None:
    before = {"a": blue(counts(10, 1, (5, 5, 1))), "b": green(counts(1, 0, (1, 0, 0)))}
    now = {"a": blue(counts(15, 1, (9, 6, 1))), "b": green(counts(2, 2, (1, 1, 1), same=3))}

    assert interval(before, now, blue="blue", green="green") == Interval(
        Side(5, 0, times(4, 1, 0), times(4, 1, 0)),
        Side(3, 2, times(0, 1, 1), times(0, 1, 1), 3, 0),
    )


def test_workers_that_come_count_from_the_next_time_and_those_that_go_no_more() -> None:
    before = {"gone": blue(counts(100)), "stays": blue(counts(5))}
    now = {"stays": blue(counts(8)), "new": blue(counts(50)), "of another": Counted("else", counts(9))}

    assert interval(before, now, blue="blue", green="green").blue.requests == 3


def test_side_without_a_worker_has_counted_nothing() -> None:
    assert interval({}, {}, blue="blue", green="green") == Interval(Side(), Side())


STEP = st.builds(
    counts,
    st.integers(0, 50),
    st.integers(0, 5),
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    st.integers(0, 3),
    st.integers(0, 1),
)


def plus(one: AnswerCounts, other: AnswerCounts) -> AnswerCounts:
    added = {bound: value + other.first_tokens[bound] for bound, value in one.first_tokens.items()}
    return AnswerCounts(
        one.answered + other.answered,
        one.failed + other.failed,
        added,
        dict(added),
        one.same + other.same,
        one.different + other.different,
    )


@given(st.lists(st.tuples(*[st.one_of(st.none(), STEP)] * 3), max_size=6))
def test_intervals_add_up_to_all_that_workers_counted_while_they_were_watched(looks) -> None:
    """Of workers that come, go and come back: whatever they counted between two looks that saw them."""
    names = ("blue", "green", "green")
    totals = [counts(3, 1, (1, 1, 1), 1, 1) for _ in names]
    snapshots: list[dict[str, Counted]] = []
    watched = [Side(), Side(), Side()]
    there = [False, False, False]
    for look in looks:
        seen = {}
        for worker, growth in enumerate(look):
            if growth is not None:
                totals[worker] = plus(totals[worker], growth)
                seen[f"uid-{worker}"] = Counted(names[worker], totals[worker])
                if there[worker]:
                    watched[worker] += side(growth)
            there[worker] = growth is not None
        snapshots.append(seen)
    intervals = [interval(one, other, blue="blue", green="green") for one, other in pairwise(snapshots)]

    assert sum((item.blue for item in intervals), Side()) == watched[0]
    assert sum((item.green for item in intervals), Side()) == watched[1] + watched[2]


@given(STEP, STEP)
def test_worker_that_began_anew_counts_with_all_that_it_has_counted_since(before, now) -> None:
    again = interval(
        {"a": green(plus(before, counts(1, 1, (1, 1, 1), 1, 1)))},
        {"a": green(counts())},
        blue="b",
        green="green",
    )
    assert again.green == side(counts())
    grown = interval({"a": green(before)}, {"a": green(plus(before, now))}, blue="b", green="green")
    assert grown.green == side(now)


def test_differences_are_counted_from_the_canary_s_beginning_and_never_twice() -> None:
    """One is a failed check, be it in an interval that does not count."""

    def told(revision: str = "green", **repeated: int) -> Counted:
        return Counted(revision, counts(**repeated))

    now = {"a": told(same=3, different=1), "b": told(same=2), "c": told("blue", same=50, different=9)}

    assert repeats(now, "green") == (6, 1)
    evidence = Evidence().noting(*repeats(now, "green")).noting(*repeats(now, "green"))
    assert (evidence.green.repeats, evidence.green.repeats_different) == (6, 1)
    assert Evidence.from_text(evidence.to_text()) == evidence
