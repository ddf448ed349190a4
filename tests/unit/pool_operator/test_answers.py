"""Reading what a worker says of the answers that it has given."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerolayer_operator.observe.answers import ANSWERS, CHECKS, TOKEN_GAPS, AnswerCounts, read_answers
from zerolayer_operator.observe.worker_metrics import FIRST_TOKENS, WorkerMetricsError

TEXT = """\
# HELP zero_layer_answers_total Generated answers.
# TYPE zero_layer_answers_total counter
zero_layer_answers_total{outcome="ok"} 40.0
zero_layer_answers_total{outcome="error"} 2.0
# TYPE zero_layer_consistency_checks_total counter
zero_layer_consistency_checks_total{result="same"} 5.0
zero_layer_consistency_checks_total{result="different"} 1.0
# TYPE zero_layer_time_to_first_token_seconds histogram
zero_layer_time_to_first_token_seconds_bucket{le="0.5",route="messages"} 30.0
zero_layer_time_to_first_token_seconds_bucket{le="+Inf",route="messages"} 38.0
zero_layer_time_to_first_token_seconds_bucket{le="0.5",route="chat"} 1.0
zero_layer_time_to_first_token_seconds_bucket{le="+Inf",route="chat"} 2.0
zero_layer_time_to_first_token_seconds_count{route="chat"} 2.0
# TYPE zero_layer_inter_token_seconds histogram
zero_layer_inter_token_seconds_bucket{le="0.01"} 900.0
zero_layer_inter_token_seconds_bucket{le="+Inf"} 1000.0
zero_layer_responses_total{code="200",route="/v1/messages"} 38.0
"""
INF = float("inf")
COUNTS = AnswerCounts(
    answered=40,
    failed=2,
    first_tokens={0.5: 31, INF: 40},
    token_gaps={0.01: 900, INF: 1000},
    same=5,
    different=1,
)


def test_reads_what_a_worker_has_counted() -> None:
    assert read_answers(TEXT) == COUNTS


def test_worker_that_has_answered_nothing_has_counted_nothing() -> None:
    new = 'zero_layer_answers_total{outcome="ok"} 0.0\nzero_layer_answers_total{outcome="error"} 0.0\n'
    assert read_answers(new) == AnswerCounts(0, 0, {}, {})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "zero_layer_answers_total{",
            "zero_layer_other_total{",
            "does not give zero_layer_answers_total; its image",
        ),
        ('{outcome="ok"} 40.0', '{outcome="ok"} NaN', "nan for zero_layer_answers_total"),
        ('{outcome="ok"} 40.0', '{outcome="ok"} -1', "-1 for zero_layer_answers_total"),
        ('{outcome="ok"} 40.0', '{outcome="ok"} 1e300', r"1e\+300 for zero_layer_answers_total"),
        ('{outcome="ok"} 40.0', '{outcome="ok"} forty', "can't be read"),
        ('{outcome="ok"} 40.0', '{outcome="ok" 40.0', "can't be read"),
        ('{result="same"} 5.0', '{result="same"} +Inf', "inf for zero_layer_consistency_checks_total"),
        ('{le="0.01"}', '{le="short"}', "can't be read"),
        ('{le="0.01"}', '{le="NaN"}', "can't be read"),
        ('{le="0.01"}', '{le="0"}', "can't be read"),
        ('{le="0.01"}', '{le="-Inf"}', "can't be read"),
        ('{le="0.01"} 900', " 900", "can't be read"),
        ("1000.0", "-1000.0", "-1e[+]03 for zero_layer_inter_token_seconds_bucket"),
        ("38.0", "38.0" + 1000 * " ", "can't be read"),
        ("# HELP", 1000 * 'zero_layer_inter_token_seconds_bucket{le="1"} 1\n' + "# HELP", "can't be read"),
    ],
)
def test_what_makes_no_sense_is_told(old: str, new: str, said: str) -> None:
    with pytest.raises(WorkerMetricsError, match=said):
        read_answers(TEXT.replace(old, new))


NAMES = st.sampled_from([ANSWERS, CHECKS, FIRST_TOKENS, TOKEN_GAPS, "zero_layer_else"])
VALUES = st.one_of(st.floats().map(str), st.integers().map(str), st.text(max_size=8))
LABELS = st.one_of(
    st.sampled_from(
        ["", '{outcome="ok"}', '{outcome="error"}', '{result="same"}', '{le="1"}', '{le="+Inf"}', "{le=}"]
    ),
    st.text(alphabet='{}="\\,le1\n ', max_size=12),
    st.text(max_size=12),
)
LINE = st.builds("{}{} {}".format, NAMES, LABELS, VALUES)


@given(st.one_of(st.text(), st.lists(st.one_of(LINE, st.text(max_size=20))).map("\n".join)))
@example(f"{ANSWERS} ")
@example(f'{ANSWERS}{{outcome="ok"}} 1 # {{')
@example(f"{ANSWERS}{{")
def test_garbage_is_told_to_be_garbage_or_gives_sensible_counts(text: str) -> None:
    """Nothing else is ever raised: it would end the look at all the other workers too."""
    try:
        counts = read_answers(text)
    except WorkerMetricsError:
        return
    figures = (counts.answered, counts.failed, counts.same, counts.different)
    assert all(0 <= figure < INF for figure in (*figures, *counts.token_gaps.values()))
    assert all(bound > 0 for bound in (*counts.first_tokens, *counts.token_gaps))


def test_growth_is_what_came_since() -> None:
    later = AnswerCounts(45, 3, {0.5: 33, INF: 44}, {0.01: 950, INF: 1100}, 6, 1)
    assert later.since(COUNTS) == AnswerCounts(5, 1, {0.5: 2, INF: 4}, {0.01: 50, INF: 100}, 1, 0)


def test_bounds_that_came_since_count_from_nothing() -> None:
    """A histogram has no bounds before its first request."""
    before = AnswerCounts(0, 1, {}, {}, 0, 0)
    assert COUNTS.since(before) == replace(COUNTS, failed=1)


@pytest.mark.parametrize(
    "now",
    [
        replace(COUNTS, answered=3),
        replace(COUNTS, failed=0),
        replace(COUNTS, same=0),
        replace(COUNTS, different=0),
        replace(COUNTS, first_tokens={0.5: 1, INF: 50}),
        replace(COUNTS, token_gaps={0.01: 901, INF: 999}),
        replace(COUNTS, first_tokens={}),
        AnswerCounts(0, 0, {}, {}),
    ],
    ids=["answers", "failures", "same", "different", "first tokens", "gaps", "no times", "nothing"],
)
def test_counters_that_went_back_are_those_of_a_worker_that_began_anew(now: AnswerCounts) -> None:
    assert now.since(COUNTS) == now
