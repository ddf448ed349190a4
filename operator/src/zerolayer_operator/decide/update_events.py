"""The Events that tell how an update goes on."""

from collections.abc import Iterator
from typing import Final

from zerolayer_operator.api.update import Promotion
from zerolayer_operator.api.update_status import End, FinishedUpdate, Step, UpdateStatus
from zerolayer_operator.decide.decision import Decision
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.decide.update_facts import same_update
from zerolayer_operator.decide.update_report import progress
from zerolayer_operator.decide.verdict_terms import Reason
from zerolayer_operator.observe.state import ObservedPool

_REASONS: Final = {
    Step.PREPARE: "UpdateStarted",
    Step.SOAK: "CanaryStarted",
    Step.AWAIT_PROMOTION: "PromotionAwaited",
    Step.PROMOTE: "Promoting",
    Step.RETAIN: "Promoted",
    Step.ROLL_BACK: "RollingBack",
}
_ENDS: Final = {
    End.PROMOTED: "UpdateFinished",
    End.ROLLED_BACK: "RolledBack",
    End.REFUSED: "UpdateRefused",
    End.CANCELLED: "UpdateCancelled",
    End.REPLACED: "UpdateReplaced",
}
_WARNINGS: Final = frozenset({End.ROLLED_BACK, End.REFUSED})


def of_update(pool: ObservedPool, decided: Plan) -> Iterator[Decision]:
    """The turn that an update takes with a plan, where it takes one."""
    if decided.finished is not None:
        yield _end(pool, decided.finished)
    before, now = pool.status.update, decided.update
    if now is not None and (before is None or _turn(before) != _turn(now)):
        warns = now.step == Step.ROLL_BACK
        message = progress(now)
        yield Decision(_key(pool, now), _REASONS[now.step], message, "Warning" if warns else "Normal")
    elif now is not None and before is not None and _gets_nowhere(before, now, decided):
        # At once: whoever waits for the soak to end would wait for a roll-back.
        message = (
            f"revision {now.to_revision} will be rolled back in the end, as nobody judges it: {now.message}"
        )
        yield Decision(f"{_key(pool, now)}/nobody", "NobodyJudges", message, "Warning")


def _gets_nowhere(before: UpdateStatus, now: UpdateStatus, decided: Plan) -> bool:
    """Whether it has just come out that a canary gets no requests and has nobody to judge it."""
    unjudged = now.step == Step.SOAK and now.reason == Reason.NO_REQUESTS and bool(now.share)
    known = before.reason == now.reason and same_update(before, now)
    automatic = decided.spec is not None and decided.spec.update.promotion == Promotion.AUTOMATIC
    return unjudged and automatic and not known


def _key(pool: ObservedPool, now: UpdateStatus) -> str:
    """Names a turn; the same one for an operator that is killed before the turn is in the status."""
    if now.step == Step.PREPARE:
        # When it began is new with each attempt, until it is written down. What went before it is not.
        last = pool.status.history[0].finished_at if pool.status.history else "none"
        return f"update/{now.from_revision}/{now.to_revision}/after {last}"
    return "/".join(("update", *_turn(now)))


def _turn(update: UpdateStatus) -> tuple[str, ...]:
    return (update.from_revision, update.to_revision, update.started_at, update.step)


def _end(pool: ObservedPool, over: FinishedUpdate) -> Decision:
    began = pool.status.update.started_at if pool.status.update is not None else ""
    message = f"update from revision {over.from_revision} to {over.to_revision}: {over.end}, {over.reason}"
    if over.message:
        message += f": {over.message}"
    key = f"update/{over.from_revision}/{over.to_revision}/{began}/over"
    return Decision(key, _ENDS[over.end], message, "Warning" if over.end in _WARNINGS else "Normal")
