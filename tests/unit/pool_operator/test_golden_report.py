"""What a golden set's Job leaves behind, and what it says of the canary."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.golden import SET_DIGEST, report
from zerolayer_operator.api.golden import ReportError, read_report
from zerolayer_operator.decide.evidence import Golden
from zerolayer_operator.decide.golden import golden_result
from zerolayer_operator.decide.verdict import Check, CheckResult, Evidence, Reason, State, Terms, judge
from zerolayer_operator.observe.state import ObservedGolden

ON = frozenset({Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY, Check.CONSISTENCY})
TERMS = Terms(min_samples=0, on=ON, golden_right=0.9)


def checks(**fields: Any) -> dict[str, CheckResult]:
    seen = ObservedGolden("run", "uid", read_report(json.dumps(report(**fields))))
    verdict = judge(Evidence(), TERMS, golden_result(seen))
    return {check.name: check for check in verdict.checks}


def test_a_report_is_read() -> None:
    found = read_report(json.dumps(report(failing=[{"id": "a.b-c_1", "why": "not the expected answer"}])))
    assert (found.set_digest, found.expected, found.green.hits) == (SET_DIGEST, 8, 8)
    assert (found.similarity.mean, found.failing[0].id) == (0.995, "a.b-c_1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("golden run: no such file", "is none: Invalid JSON"),
        ("[]", "is none"),
        ("{}", "is none: set: Field required"),
        ("[" * 4000, "is none"),
        ("x" * 10_000, "has more than 4096 bytes"),
        (json.dumps(report(set="sha256:x")), "is none: set"),
        (json.dumps(report(green={"hits": 9, "asked": 9})), "different questions"),
        (json.dumps(report(green={"hits": 9})), "more right answers than questions"),
        (json.dumps(report(green={"errors": 3})), "more answers than questions"),
        (json.dumps(report(green={"hits": -1})), "is none: green.hits"),
        (json.dumps(report(similarity={"mean": float("nan")})), "is none"),
        (json.dumps(report(similarity={"threshold": 7})), "is none: similarity.threshold"),
        (json.dumps(report(failing=[{"id": "a b", "why": "x"}])), "is none: failing.0.id"),
        (json.dumps(report(failing=[{"id": "a", "why": "x" * 600}])), "is none: failing.0.why"),
        (json.dumps(report())[:-5], "is none: Invalid JSON"),
    ],
)
def test_what_is_no_report(text: str, said: str) -> None:
    with pytest.raises(ReportError) as raised:
        read_report(text)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(field=st.sampled_from([*report()]), value=JSON, inside=st.none() | st.sampled_from(["asked", "hits"]))
def test_no_report_does_harm(field: str, value: Any, inside: str | None) -> None:
    """Whatever a pod says, it is read or refused, and what is read makes shares between 0 and 1."""
    body = report()
    if inside is not None and isinstance(body[field], dict):
        body[field] = {**body[field], inside: value}
    else:
        body[field] = value
    with contextlib.suppress(ReportError):
        found = read_report(json.dumps(body))
        assert 0 <= found.green.hits <= found.expected
        assert isinstance(golden_result(ObservedGolden("run", "uid", found)), Golden)


def test_nothing_is_wrong() -> None:
    found = checks()
    assert {found[name].state for name in ON} == {State.OK}
    assert "8 of 8 golden answers as expected on green" in found[Check.GOLDEN_ANSWERS].detail


@pytest.mark.parametrize(
    ("fields", "check", "reason"),
    [
        ({"green": {"hits": 7}}, Check.GOLDEN_ANSWERS, Reason.WRONG_ANSWERS),
        ({"similarity": {"mean": 0.96}}, Check.GOLDEN_SIMILARITY, Reason.ANSWERS_DRIFTED),
        ({"green": {"repeatsDiffer": 1}}, Check.CONSISTENCY, Reason.NOT_DETERMINISTIC),
    ],
)
def test_each_harm_has_its_reason(fields: dict[str, Any], check: Check, reason: Reason) -> None:
    found = checks(**fields, failing=[{"id": "capital", "why": "not the expected answer"}])
    assert (found[check].state, found[check].reason) == (State.FAILED, reason)
    assert {found[name].state for name in ON - {check}} == {State.OK}


def test_failing_questions_are_named() -> None:
    failing = [{"id": f"q{number}", "why": "not the expected answer"} for number in range(9)]
    detail = checks(green={"hits": 0}, failing=failing)[Check.GOLDEN_ANSWERS].detail
    assert "q0 (not the expected answer)" in detail
    assert "q4" in detail
    assert "q5" not in detail


@pytest.mark.parametrize(
    ("expected", "hits", "percent", "state"),
    [(100, 7, 7, State.OK), (100, 6, 7, State.FAILED), (10, 9, 90, State.OK), (10, 0, 0, State.OK)],
)
def test_the_share_that_is_required(expected: int, hits: int, percent: int, state: State) -> None:
    golden = Golden(expected=expected, right=hits)
    verdict = judge(
        Evidence(), Terms(on=frozenset({Check.GOLDEN_ANSWERS}), golden_right=percent / 100), golden
    )
    assert next(check for check in verdict.checks if check.name == Check.GOLDEN_ANSWERS).state is state


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (ObservedGolden("run", unknown="the golden set has not been asked yet"), "has not been asked yet"),
        (ObservedGolden("run", "uid", unknown="can't be asked: why"), "can't be asked: why"),
        (
            ObservedGolden(
                "run",
                "uid",
                read_report(
                    json.dumps(
                        report(
                            green={"hits": 7, "errors": 1},
                            blue={"hits": 6, "errors": 2},
                            failing=[{"id": "a", "why": "no answer within 60 s"}],
                        )
                    )
                ),
            ),
            "got no answer, 1 of 10 on green and 2 of 10 on blue: a: no answer within 60 s",
        ),
    ],
)
def test_what_is_not_known_is_no_pass(seen: ObservedGolden, said: str) -> None:
    """Neither is it a failure: a question that got no answer got no wrong one."""
    verdict = judge(Evidence(), TERMS, golden_result(seen))
    assert verdict.reason is Reason.NO_DATA
    found = {check.name: check for check in verdict.checks}
    assert {found[name].state for name in ON} == {State.NO_DATA}
    assert said in found[Check.GOLDEN_ANSWERS].detail
    assert said in found[Check.GOLDEN_SIMILARITY].detail


def test_what_a_set_does_not_ask_is_off() -> None:
    assert checks(similarity={"kept": 0, "mean": None})[Check.GOLDEN_SIMILARITY].state is State.OFF
    side = {"hits": 0}
    assert checks(expected=0, blue=side, green=side)[Check.GOLDEN_ANSWERS].state is State.OFF


def test_without_a_set_there_is_nothing_to_say() -> None:
    assert golden_result(None) is None
