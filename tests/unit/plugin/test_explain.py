"""What `explain` tells at every step: what is waited for, what comes next, what can be done."""

from typing import Any

import pytest

from zerolayer_dev.testing.updating_pools import (
    BLUE,
    GREEN,
    NOW,
    body_with,
    condition,
    failed,
    finished,
    revision_deployment,
    status_with,
    update_at,
)
from zerolayer_kubectl.explain import Explanation, explain
from zerolayer_kubectl.pool import read
from zerolayer_operator.api.status import Phase
from zerolayer_operator.api.update_status import End, Outcome, Step, Wish

PROMOTE = "Promote it now: `kubectl zerolayer promote facts --namespace team`."
LAST = f"The last one, to revision {GREEN} (anchor v2),"
GIVE_REQUESTS = (
    "Give it requests: through a gateway (spec.routing.gateway, and the chart's gateway.enabled), with "
    "spec.update.canaryWeight of at least 25, or with more workers of the revision that serves."
)
LEAVE = "Leave it now: `kubectl zerolayer rollback facts --namespace team`."
LOGS = f"`kubectl logs --namespace team --selector zerolayer.dev/pool=facts,zerolayer.dev/revision={GREEN}`."


def told(status: dict[str, Any], **more: Any) -> Explanation:
    deployments = [revision_deployment(BLUE, 3, 3), revision_deployment(GREEN, 1, 1)]
    return explain(read(body_with(status, **more), deployments), NOW)


@pytest.mark.parametrize(
    ("step", "waits_for", "to_do"),
    [
        (
            Step.PREPARE,
            (f"Workers of revision {GREEN} that are warm: 1/1 ready.",),
            (f"Look at its workers: {LOGS}", LEAVE),
        ),
        (
            Step.SOAK,
            (
                "The rest of the soak: 18h.",
                "320 more answers of the canary, of 500 that are needed.",
                "Data for check consistency: no request was asked again.",
            ),
            (PROMOTE, LEAVE),
        ),
        (
            Step.AWAIT_PROMOTION,
            ("A person, because spec.update.promotion is Manual.",),
            (PROMOTE, LEAVE),
        ),
        (
            Step.PROMOTE,
            ("As many warm workers as the load needs: 1/1 ready.", f"Revision {BLUE} has 3/3 ready."),
            (LEAVE,),
        ),
        (Step.RETAIN, ("The end of spec.update.blueRetention: 8m.",), (LEAVE,)),
    ],
)
def test_what_a_step_waits_for(step: Step, waits_for: tuple[str, ...], to_do: tuple[str, ...]) -> None:
    found = told(status_with(update_at(step)))

    assert found.waits_for == waits_for
    assert found.to_do == to_do
    assert found.goes_on
    assert found.goes_back


def test_a_roll_back_tells_its_reason_and_the_remedy() -> None:
    update = update_at(Step.ROLL_BACK, reason="AnchorNotFinite", message="a NaN in norm.weight", raise_to=4)
    found = told(status_with(update))

    left = f"Revision {GREEN} (anchor v2) is left, as decided by the verdict"
    assert found.now == (f"{left}: AnchorNotFinite: a NaN in norm.weight.",)
    assert found.waits_for == (
        f"Warm workers of revision {BLUE} (anchor v1) of 4 that the load needs: 3/3 ready.",
    )
    assert found.to_do[0].startswith("The bundle holds values that are no numbers.")


def test_a_failed_revision_has_reason_remedy_and_what_would_try_it_again() -> None:
    found = told(status_with(phase=Phase.DEGRADED, failed=failed()))

    assert "WrongAnswers: 12 of 50 golden answers as expected." in found.now[0]
    assert "spec.update changes" in found.goes_on[0]
    assert found.to_do[0].startswith("Ask the bundle itself")
    assert found.to_do[1] == f"One of its workers is kept for 40m more: {LOGS}"


def test_a_soak_that_only_lacks_a_verdict_says_so() -> None:
    update = update_at(
        Step.SOAK,
        soak_started_at="2026-11-29T11:00:00Z",
        samples=900,
        checks=(),
        reason="NoData",
        message="why",
    )

    assert told(status_with(update)).waits_for == ("A verdict: NoData: why.",)
    passed = update.model_copy(update={"verdict": Outcome.PASS})
    assert told(status_with(passed)).waits_for == ()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "Without a verdict within 72h it is rolled back."),
        ({"maxSoak": "25h"}, "Without a verdict within 25h it is rolled back."),
    ],
)
def test_how_long_a_soak_may_be_extended(settings: dict[str, Any], sentence: str) -> None:
    assert sentence in told(status_with(update_at(Step.SOAK)), update=settings).goes_back


def test_by_hand_nothing_is_promoted_by_a_verdict() -> None:
    found = told(status_with(update_at(Step.SOAK)), update={"promotion": "Manual"})

    assert found.goes_on == ("After 24h of soak a person may promote it.",)
    assert not any("Without a verdict" in sentence for sentence in found.goes_back)


def test_what_holds_the_operator_up_comes_first() -> None:
    problem = condition("Degraded", "NoRoomForUpdate", "no node has room; add one", holds=True)
    found = told(status_with(update_at(Step.PREPARE), conditions=(problem,)), paused=True)

    assert found.waits_for[:2] == (
        "In the way: NoRoomForUpdate: no node has room; add one.",
        "The pool is paused: the operator does nothing until spec.paused is unset.",
    )


def test_a_wish_is_told_while_its_revision_is_introduced() -> None:
    asked = {"zerolayer.dev/promote": GREEN, "zerolayer.dev/rollback": BLUE}
    wishes = [
        line for line in told(status_with(update_at(Step.SOAK)), annotations=asked).now if "asked" in line
    ]

    assert wishes == [f"Somebody has asked to promote revision {GREEN}."]
    assert not any("asked" in line for line in told(status_with(), annotations=asked).now)


def test_a_wish_of_an_earlier_update_is_nobodys_now() -> None:
    update = update_at(Step.SOAK, standing_wishes=(Wish.ROLL_BACK,))
    found = told(status_with(update), annotations={"zerolayer.dev/rollback": GREEN})

    assert [line for line in found.now if "rollback" in line or "roll back" in line] == [
        "The annotation zerolayer.dev/rollback is of an earlier update and decides nothing."
    ]


def unasked(**changes: Any) -> dict[str, Any]:
    found = {"weight": 0, "share": 50, "reason": "NoRequests", "message": "none", "samples": 0, "checks": ()}
    return status_with(update_at(Step.SOAK, **{**found, **changes}))


def test_a_canary_that_gets_no_requests_tells_what_would_judge_it() -> None:
    found = told(unasked())

    assert found.waits_for == ("Requests: it gets none, and without any there is no verdict.",)
    assert found.goes_on == ("Nothing by itself: the soak has no good end without requests.",)
    assert "Without a verdict within 72h it is rolled back." in found.goes_back
    assert found.to_do == (
        "Have it judged by questions whose answers are known: spec.update.golden.",
        GIVE_REQUESTS,
        "Decide yourself: set spec.update.promotion to Manual, and look at it before you promote it.",
        "Do without a verdict: set spec.update.strategy to Immediate.",
        PROMOTE,
        LEAVE,
    )


def test_a_canary_without_requests_may_be_promoted_by_hand_after_the_soak() -> None:
    found = told(unasked(), update={"promotion": "Manual"})

    assert found.goes_on == ("After 24h of soak a person may promote it.",)
    assert found.waits_for[0] == "The rest of the soak: 18h."
    assert not any("Manual" in sentence for sentence in found.to_do)


def test_a_canary_whose_workers_are_not_ready_gets_requests_once_they_are() -> None:
    found = told(unasked(share=0))

    assert found.goes_on == ("As soon as one of its workers is ready again, it gets requests.",)
    assert found.to_do == (f"Look at its workers: {LOGS}", PROMOTE, LEAVE)


def test_a_canary_that_the_golden_set_judges_alone_needs_no_answers() -> None:
    update = update_at(Step.SOAK, weight=0, share=50, samples=0, reason="NoData", message="none", checks=())
    found = told(status_with(update), update={"golden": {"configMap": {"name": "facts-golden"}}})

    assert found.waits_for == ("The rest of the soak: 18h.",)


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ({}, "No operator has looked at pool facts yet."),
        (status_with(), "No update is going on."),
        (
            status_with(history=(finished(End.PROMOTED),)),
            f"{LAST} ended at 2026-11-30 11:00:00 UTC: Promoted: NoWorse: no worse than blue.",
        ),
    ],
    ids=["unseen", "settled", "after one"],
)
def test_without_an_update(status: dict[str, Any], sentence: str) -> None:
    assert sentence in told(status).now


def test_a_pool_that_moves_without_a_canary_tells_what_it_waits_for() -> None:
    moves = condition("Progressing", "Updating", "revision b warms up", holds=True)
    found = told(status_with(phase=Phase.UPDATING, conditions=(moves,)))

    assert found.now == (f"Revision {BLUE} (anchor v1) serves.",)
    assert found.waits_for == ("revision b warms up.",)


def test_a_step_that_is_not_known_is_no_traceback() -> None:
    status = status_with(update_at(Step.SOAK))
    status["update"]["step"] = "Dance"

    assert told(status).now == ("The update is at step Dance, which this plugin does not know.",)


def test_as_text_each_part_has_its_title() -> None:
    lines = told(status_with(update_at(Step.AWAIT_PROMOTION))).lines()

    assert lines[0] == "What is going on"
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "What is going on", "What it waits for", "What makes it go on", "What makes it go back",
        "What you can do",
    ]  # fmt: skip
