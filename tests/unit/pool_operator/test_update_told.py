"""What Events, conditions and the rest of the status tell of an update."""

from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, spec
from zerolayer_operator.api.revision import FrozenAnchor, FrozenInputs, revision_hash
from zerolayer_operator.api.status import HISTORY_LIMIT, PoolStatus, RevisionStatus
from zerolayer_operator.api.update_status import (
    ActiveAnchor,
    AnchorStatus,
    End,
    FailedUpdate,
    FinishedUpdate,
    Outcome,
    Step,
    UpdateStatus,
)
from zerolayer_operator.decide.plan import Plan, PlannedRevision, plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.decide.update_events import of_update
from zerolayer_operator.decide.update_report import progress
from zerolayer_operator.decide.wire import later, wire_time
from zerolayer_operator.observe.state import ObservedPool, Problem

DIGESTS = {version: f"sha256:{version[1:] * 64}" for version in ("v1", "v2")}
SOURCE = {"configMap": {"name": "facts"}}


def anchored(version: str, digest: str | None = None, **fields: Any):
    return spec(anchor={"version": version, "digest": digest or DIGESTS[version], "source": SOURCE}, **fields)


def frozen(version: str | None) -> FrozenInputs:
    anchor = FrozenAnchor(version=version, digest=DIGESTS[version]) if version is not None else None
    return FrozenInputs(image="worker:1", anchor=anchor)


OLD, NEW = anchored("v1"), anchored("v2")
BLUE, GREEN = revision_hash(OLD), revision_hash(NEW)


def record(step: Step, **changes: Any) -> UpdateStatus:
    values: dict[str, Any] = {
        "step": step,
        "from_revision": BLUE,
        "to_revision": GREEN,
        "started_at": wire_time(NOW),
        "weight": 10,
        "soak_ends_at": "2026-01-03T00:00:00Z",
        "decided_by": "verdict",
        "message": "as was said",
    }
    return UpdateStatus(**{**values, **changes})


def over(end: End = End.PROMOTED, **changes: Any) -> FinishedUpdate:
    values: dict[str, Any] = {
        "from_revision": BLUE,
        "to_revision": GREEN,
        "end": end,
        "reason": "NoWorse",
        "message": "no worse in 600 answers",
        "finished_at": wire_time(NOW),
        "decided_by": "verdict",
    }
    return FinishedUpdate(**{**values, **changes})


def seen(of=NEW, versions: tuple[str | None, ...] = ("v1", "v2"), **status: Any) -> ObservedPool:
    """A pool with both revisions' Deployments; the old one serves and is warm."""
    recorded = RevisionStatus(name=BLUE, image="worker:1", warm=True)
    sides = zip((OLD, NEW), versions, strict=True)
    return pool(
        of,
        status=PoolStatus(**{"serving_revision": BLUE, "revisions": (recorded,), **status}),
        deployments=tuple(deployment(side, 1, 1, frozen=frozen(version)) for side, version in sides),
    )


def decided(update: UpdateStatus | None = None, serving: str = BLUE, of=NEW, **fields: Any) -> Plan:
    revisions = (PlannedRevision(BLUE, frozen("v1")), PlannedRevision(GREEN, frozen("v2")))
    return Plan(spec=of, wanted=GREEN, serving=serving, revisions=revisions, update=update, **fields)


@pytest.mark.parametrize(
    ("step", "reason", "kind", "said"),
    [
        (Step.PREPARE, "UpdateStarted", "Normal", f"revision {GREEN} warms up; revision {BLUE} serves"),
        (
            Step.SOAK,
            "CanaryStarted",
            "Normal",
            f"revision {GREEN} gets 10% of the requests until 2026-01-03T",
        ),
        (Step.AWAIT_PROMOTION, "PromotionAwaited", "Normal", "waits for `kubectl zerolayer promote`"),
        (Step.PROMOTE, "Promoting", "Normal", f"to take over from revision {BLUE}, as decided by verdict"),
        (Step.RETAIN, "Promoted", "Normal", f"revision {GREEN} serves; revision {BLUE} stays"),
        (
            Step.ROLL_BACK,
            "RollingBack",
            "Warning",
            f"back to revision {BLUE}, as decided by verdict: as was said",
        ),
    ],
)
def test_every_turn_is_told_once(step: Step, reason: str, kind: str, said: str) -> None:
    (decision,) = of_update(seen(), decided(record(step)))

    assert (decision.reason, decision.type) == (reason, kind)
    assert said in decision.message
    again = record(step, samples=9, weight=0, message="other figures", verdict=Outcome.PASS)
    assert list(of_update(seen(update=record(step)), decided(again))) == []


def test_turns_are_told_under_names_of_their_own() -> None:
    again = seen(history=(over(),))
    steps = [decision for step in Step for decision in of_update(seen(), decided(record(step)))]
    anew = [
        decision
        for step in Step
        for decision in of_update(again, decided(record(step, started_at=later(NOW, 60))))
    ]
    assert len({decision.key for decision in (*steps, *anew)}) == 2 * len(Step)


def test_beginning_that_was_told_but_not_written_down_is_not_told_under_another_name() -> None:
    """Each attempt begins at another time; an operator that was killed after the Event makes another one."""
    (first,) = of_update(seen(), decided(record(Step.PREPARE)))
    (second,) = of_update(seen(), decided(record(Step.PREPARE, started_at=later(NOW, 5))))

    assert first.key == second.key


UNASKED = {"weight": 0, "share": 50, "reason": "NoRequests"}
BY_HAND = anchored("v2", update={"promotion": "Manual"})


def test_canary_that_nobody_can_judge_is_told_at_once() -> None:
    before = seen(update=record(Step.SOAK, weight=0, share=50))
    (decision,) = of_update(before, decided(record(Step.SOAK, **UNASKED)))

    assert (decision.reason, decision.type) == ("NobodyJudges", "Warning")
    assert decision.message == (
        f"revision {GREEN} will be rolled back in the end, as nobody judges it: as was said"
    )


@pytest.mark.parametrize(
    ("before", "now", "of"),
    [
        (UNASKED, UNASKED, NEW),
        ({}, UNASKED, BY_HAND),
        ({}, {**UNASKED, "share": 0}, NEW),
        ({}, {**UNASKED, "share": None}, NEW),
        ({}, {**UNASKED, "reason": "TooFewSamples"}, NEW),
    ],
    ids=["told before", "a person judges", "no worker is ready", "a gateway", "it is asked"],
)
def test_canary_that_is_judged_or_told_of_is_not_told(before: dict, now: dict, of: Any) -> None:
    seen_before = seen(update=record(Step.SOAK, **before))
    assert list(of_update(seen_before, decided(record(Step.SOAK, **now), of=of))) == []


@pytest.mark.parametrize(
    ("end", "reason", "kind"),
    [
        (End.PROMOTED, "UpdateFinished", "Normal"),
        (End.ROLLED_BACK, "RolledBack", "Warning"),
        (End.REFUSED, "UpdateRefused", "Warning"),
        (End.CANCELLED, "UpdateCancelled", "Normal"),
        (End.REPLACED, "UpdateReplaced", "Normal"),
    ],
)
def test_every_end_is_told_with_its_reason(end: End, reason: str, kind: str) -> None:
    before = seen(update=record(Step.SOAK))
    (decision,) = of_update(before, decided(finished=over(end)))

    assert (decision.reason, decision.type) == (reason, kind)
    assert decision.message == (
        f"update from revision {BLUE} to {GREEN}: {end}, NoWorse: no worse in 600 answers"
    )
    bare = next(of_update(before, decided(finished=over(end, message=""))))
    assert bare.message.endswith(": " + f"{end}, NoWorse")
    later_one = seen(update=record(Step.SOAK, started_at=later(NOW, 60)))
    assert next(of_update(later_one, decided(finished=over(end)))).key != decision.key


def test_update_that_is_replaced_ends_and_the_next_one_begins() -> None:
    before = seen(update=record(Step.SOAK))
    following = record(Step.PREPARE, to_revision="third", started_at=later(NOW, 60))
    told = list(of_update(before, decided(following, finished=over(End.REPLACED))))
    assert [decision.reason for decision in told] == ["UpdateReplaced", "UpdateStarted"]


def test_nothing_is_told_without_an_update() -> None:
    assert list(of_update(seen(), decided())) == []


def test_soak_that_has_just_begun_says_nothing_of_a_verdict_yet() -> None:
    said = progress(record(Step.SOAK, message=None))
    assert "None" not in said
    assert said.endswith("verdict: Undecided after 0 answers")
    assert progress(record(Step.SOAK)).endswith("verdict: Undecided after 0 answers; as was said")


def told(observed: ObservedPool, planned: Plan) -> PoolStatus:
    return report(observed, planned, (), NOW)


@pytest.mark.parametrize(
    ("versions", "anchors"),
    [(("v1", "v2"), ("v1", "v2")), ((None, "v2"), (None, "v2")), (("v1", None), ("v1", None))],
)
def test_history_names_the_anchors_of_both_revisions(versions, anchors) -> None:
    status = told(seen(versions=versions), decided(finished=over()))
    (entry,) = status.history or ()
    assert (entry.from_anchor, entry.to_anchor) == anchors
    assert (entry.end, entry.reason, entry.decided_by) == (End.PROMOTED, "NoWorse", "verdict")


def test_history_of_revisions_that_are_gone_names_no_anchor() -> None:
    status = told(seen(), decided(finished=over(to_revision="gone")))
    (entry,) = status.history or ()
    assert (entry.from_anchor, entry.to_anchor) == ("v1", None)


def test_history_has_the_last_ten_the_newest_first() -> None:
    known: tuple[FinishedUpdate, ...] = ()
    for number in range(HISTORY_LIMIT + 3):
        ended = over(samples=number)
        known = told(seen(history=known or None), decided(finished=ended)).history or ()
    assert [entry.samples for entry in known] == list(range(HISTORY_LIMIT + 2, 2, -1))


def test_history_stays_while_nothing_ends() -> None:
    known = (over(),)
    assert told(seen(history=known), decided(record(Step.SOAK))).history == known
    paused = Plan(spec=None, wanted=GREEN, serving=BLUE)
    assert told(seen(history=known), paused).history == known


def test_status_tells_the_image_that_a_bundle_comes_from() -> None:
    image = frozen("v1").model_copy(update={"anchor_image": "a:1@sha256:aa"})
    planned = Plan(spec=NEW, wanted=GREEN, serving=BLUE, revisions=(PlannedRevision(BLUE, image),))
    (revision,) = told(seen(), planned).revisions or ()
    assert revision.anchor_image == "a:1@sha256:aa"


def active(version: str, revision: str) -> ActiveAnchor:
    return ActiveAnchor(version=version, digest=DIGESTS[version], revision=revision)


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        (decided(), AnchorStatus(active=active("v1", BLUE))),
        (decided(record(Step.SOAK)), AnchorStatus(active=active("v1", BLUE), canary=active("v2", GREEN))),
        (decided(record(Step.RETAIN), GREEN), AnchorStatus(active=active("v2", GREEN))),
        (Plan(spec=NEW, wanted=GREEN, serving=BLUE, revisions=(PlannedRevision(BLUE, frozen(None)),)), None),
    ],
    ids=["no update", "canary", "taken over", "no anchor"],
)
def test_status_tells_the_anchors_that_answer(planned: Plan, expected: AnchorStatus | None) -> None:
    assert told(seen(), planned).anchor == expected


def test_paused_pool_keeps_what_was_told_of_its_update() -> None:
    failed = FailedUpdate(
        revision="bad",
        settings="s",
        reason="NotDeterministic",
        message="m",
        failed_at=wire_time(NOW),
        retained_until=wire_time(NOW),
    )
    before = {
        "update": record(Step.SOAK),
        "failed": failed,
        "anchor": AnchorStatus(active=active("v1", BLUE)),
    }
    observed = seen(anchored("v2", paused=True), **before)
    status = told(observed, plan(observed, DEFAULTS, NOW))
    assert {name: getattr(status, name) for name in before} == before


def anchor_current(observed: ObservedPool, planned: Plan, *refused: Problem) -> tuple[str, str, str] | None:
    found = report(observed, planned, refused, NOW).conditions or ()
    return next(
        ((item.status, item.reason, item.message) for item in found if item.type == "AnchorCurrent"), None
    )


REFUSED = Problem("AnchorKeyMissing", "there is no such key")
SAME_BUNDLE = anchored("v2", DIGESTS["v1"])


@pytest.mark.parametrize(
    ("observed", "planned", "refused", "expected"),
    [
        (seen(spec()), decided(of=spec()), (), None),
        (seen(OLD), decided(of=OLD), (), ("True", "AnchorServes", f"revision {BLUE} answers with anchor v1")),
        (seen(), decided(record(Step.SOAK)), (), ("False", "Soak", progress(record(Step.SOAK)))),
        (
            seen(),
            decided(record(Step.RETAIN), GREEN),
            (),
            ("True", "AnchorServes", f"revision {GREEN} answers with anchor v2"),
        ),
        (seen(), decided(), (REFUSED,), ("False", "AnchorKeyMissing", "there is no such key")),
        (
            seen(SAME_BUNDLE),
            decided(of=SAME_BUNDLE),
            (),
            ("False", "WarmingUp", "no worker with anchor v2 is warm yet"),
        ),
        (
            seen(anchored("v2", paused=True)),
            Plan(spec=None, wanted=GREEN, serving=BLUE),
            (),
            ("False", "Paused", "spec.paused is true: nothing is changed"),
        ),
    ],
    ids=[
        "no anchor",
        "serves",
        "canary",
        "taken over",
        "problem",
        "another version of the same bundle",
        "paused",
    ],
)
def test_condition_tells_whether_the_anchor_of_the_spec_answers(observed, planned, refused, expected) -> None:
    assert anchor_current(observed, planned, *refused) == expected


def test_anchor_is_not_current_before_a_worker_was_warm() -> None:
    cold = pool(NEW, deployments=(deployment(NEW, 1, 0, frozen=frozen("v2")),))
    found = anchor_current(cold, decided(serving=GREEN))
    assert found is not None
    assert found[:2] == ("False", "WarmingUp")
