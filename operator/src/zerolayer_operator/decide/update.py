"""How an update goes on: a state machine over what the cluster holds, with the clock as an argument.

Whoever is killed at any instant finds the same step again: it is in the status, and what a step does is
derived from it and from what is observed, never from what was done before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from zerolayer_operator.api.types import seconds
from zerolayer_operator.api.update import Promotion
from zerolayer_operator.api.update_status import (
    End,
    FailedUpdate,
    FinishedUpdate,
    Outcome,
    Step,
    UpdateStatus,
    Wish,
)
from zerolayer_operator.decide.update_facts import Facts, Next, canary_size, full_size, settings_hash
from zerolayer_operator.decide.wire import fitting, later, wire_time
from zerolayer_operator.observe.access import timestamp

RAISE_PATIENCE: Final = timedelta(minutes=10)
"""How long a roll-back waits for the old revision to grow: without room it carries what it can."""

_SKEW: Final = timedelta(minutes=5)
"""How far the clock of the operator that wrote a moment may have been ahead of this one's."""

_MOMENTS: Final = ("started_at", "step_started_at", "soak_started_at", "switched_at")
_AWAITED: Final = {
    Step.SOAK: "soak_started_at",
    Step.RETAIN: "switched_at",
    Step.ROLL_BACK: "step_started_at",
}
"""The moment that the end of a step is reckoned from."""

BY_VERDICT: Final = "verdict"
BY_SPEC: Final = "spec"
BY_WORKERS: Final = "workers"
BY_PERSON: Final = "person"
BY_OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why an update takes the turn that it takes: in one word, in a sentence, and by whom."""

    reason: str
    message: str
    by: str


_ASKED: Final = _Cause("Requested", "a person asked for it", BY_PERSON)


def advance(facts: Facts) -> Next:
    """The next step, one at a time."""
    failed = _still_failed(facts)
    record = facts.record
    if record is not None and facts.serving not in {record.from_revision, record.to_revision}:
        # Another revision serves by somebody's hand: nothing of the record is true any more.
        record = None
    if record is None:
        return Next(facts.serving, None if failed else _begun(facts), failed)
    record = _mended(record, facts.now)
    if record.step in _BEFORE and facts.serving == record.to_revision:
        # Somebody deleted the old revision: the new one is all there is.
        return Next(facts.serving, _switched(facts, record))
    replaced = facts.wanted not in {record.from_revision, record.to_revision}
    if replaced and facts.serving == record.from_revision:
        message = f"the spec asks for revision {facts.wanted} now"
        over = _finished(facts, record, End.REPLACED, _Cause("Replaced", message, BY_SPEC))
        return Next(facts.serving, _begun(facts), failed, over)
    return _STEPS[record.step](facts, record)


def _mended(record: UpdateStatus, now: datetime) -> UpdateStatus:
    """The record without moments that a hand took away or moved ahead: what waits for one would for good."""
    changes: dict[str, str] = {}
    for field in _MOMENTS:
        moment = timestamp(getattr(record, field))
        lacks = moment is None and field == _AWAITED.get(record.step)
        if lacks or (moment is not None and moment - now > _SKEW):
            changes[field] = wire_time(now)
    return record.model_copy(update=changes) if changes else record


def _still_failed(facts: Facts) -> FailedUpdate | None:
    failed = facts.failed
    if failed is None or failed.revision != facts.wanted:
        return None
    return failed if failed.settings == settings_hash(facts.settings) else None


def _begun(facts: Facts) -> UpdateStatus | None:
    if facts.serving == facts.wanted or not facts.makeable:
        return None
    now = wire_time(facts.now)
    wishes = {Wish.PROMOTE: facts.promote, Wish.ROLL_BACK: facts.roll_back}
    return UpdateStatus(
        step=Step.PREPARE,
        from_revision=facts.serving,
        to_revision=facts.wanted,
        started_at=now,
        step_started_at=now,
        decided_by=BY_SPEC,
        # Whoever set them meant an earlier update to the same revision.
        standing_wishes=tuple(wish for wish, revision in wishes.items() if revision == facts.wanted),
    )


def _prepare(facts: Facts, record: UpdateStatus) -> Next:
    left = _left_early(facts, record)
    if left is not None:
        return left
    if facts.refusal is not None:
        return _to_roll_back(facts, record, _Cause(facts.refusal.reason, facts.refusal.message, BY_WORKERS))
    if facts.green.has(canary_size(facts.settings.canary_weight, facts.blue.size)) and facts.blue.ready:
        now = wire_time(facts.now)
        soaking = _stepped(
            facts,
            record,
            Step.SOAK,
            soak_started_at=now,
            soak_ends_at=later(facts.now, facts.settings.soak_s),
            decided_by=BY_OPERATOR,
        )
        return Next(facts.serving, soaking)
    return Next(facts.serving, record)


def _soak(facts: Facts, record: UpdateStatus) -> Next:
    left = _left_early(facts, record) or _asked_to_promote(facts, record)
    if left is not None:
        return left
    told = _told(facts, record)
    began = timestamp(record.soak_started_at) or facts.now
    soaked_s = (facts.now - began).total_seconds()
    over = soaked_s >= facts.settings.soak_s
    if over and facts.settings.promotion == Promotion.MANUAL:
        return Next(facts.serving, _stepped(facts, told, Step.AWAIT_PROMOTION, decided_by=BY_OPERATOR))
    if over and facts.assessment.outcome == Outcome.PASS:
        return Next(facts.serving, _stepped(facts, told, Step.PROMOTE, decided_by=BY_VERDICT))
    if soaked_s >= facts.settings.max_soak_s:
        message = f"no verdict within {facts.settings.max_soak_s} s: {facts.assessment.message}"
        return _to_roll_back(facts, told, _Cause(facts.assessment.reason, message, BY_OPERATOR))
    return Next(facts.serving, told.model_copy(update={"soak_ends_at": later(began, facts.settings.soak_s)}))


def _await_promotion(facts: Facts, record: UpdateStatus) -> Next:
    left = _left_early(facts, record) or _asked_to_promote(facts, record)
    return left or Next(facts.serving, _told(facts, record))


def _promote(facts: Facts, record: UpdateStatus) -> Next:
    left = _left_early(facts, record)
    if left is not None:
        return left
    if facts.green.has(full_size(record, facts.blue.size, facts.most)):
        return Next(record.to_revision, _switched(facts, record))
    return Next(facts.serving, record)


def _retain(facts: Facts, record: UpdateStatus) -> Next:
    if facts.serving == record.from_revision:
        # Killed after the status was written, or a hand moved it back: the switch is done again.
        return Next(record.to_revision, record)
    if facts.wanted == record.from_revision:
        message = f"the spec asks for revision {record.from_revision} again"
        return _to_roll_back(facts, record, _Cause("SpecSetBack", message, BY_SPEC))
    if facts.roll_back == record.to_revision:
        return _to_roll_back(facts, record, _ASKED)
    if facts.green.size and not facts.green.ready and facts.blue.ready:
        message = f"no worker of revision {record.to_revision} answers"
        return _to_roll_back(facts, record, _Cause("NoAnswer", message, BY_WORKERS))
    switched = timestamp(record.switched_at) or facts.now
    if facts.now - switched >= timedelta(seconds=seconds(facts.settings.blue_retention)):
        over = _finished(facts, record, End.PROMOTED, _cause_of(record))
        return Next(facts.serving, finished=over)
    return Next(facts.serving, record)


def _roll_back(facts: Facts, record: UpdateStatus) -> Next:
    back = record.from_revision
    if facts.serving == back:
        began = timestamp(record.step_started_at) or facts.now
        if facts.blue.has(record.raise_to or 0) or facts.now - began >= RAISE_PATIENCE:
            return _rolled_back(facts, record)
        return Next(back, record)
    unanswered = facts.green.ready == 0 and facts.blue.ready > 0
    if unanswered or facts.blue.has(max(record.raise_to or 0, 1)):
        return _rolled_back(facts, record)
    return Next(facts.serving, record)


_BEFORE: Final = frozenset({Step.PREPARE, Step.SOAK, Step.AWAIT_PROMOTION, Step.PROMOTE})

_STEPS: Final[dict[Step, Callable[[Facts, UpdateStatus], Next]]] = {
    Step.PREPARE: _prepare,
    Step.SOAK: _soak,
    Step.AWAIT_PROMOTION: _await_promotion,
    Step.PROMOTE: _promote,
    Step.RETAIN: _retain,
    Step.ROLL_BACK: _roll_back,
}


def _left_early(facts: Facts, record: UpdateStatus) -> Next | None:
    """What ends an update at any time before the new revision has taken over."""
    if facts.wanted == record.from_revision:
        message = f"the spec asks for revision {record.from_revision} again"
        over = _finished(facts, record, End.CANCELLED, _Cause("SpecSetBack", message, BY_SPEC))
        return Next(facts.serving, finished=over)
    if facts.roll_back == record.to_revision:
        return _to_roll_back(facts, record, _ASKED)
    if record.step != Step.PREPARE and facts.assessment.outcome == Outcome.FAIL:
        told, found = _told(facts, record), facts.assessment
        return _to_roll_back(facts, told, _Cause(found.reason, found.message, BY_VERDICT))
    return None


def _asked_to_promote(facts: Facts, record: UpdateStatus) -> Next | None:
    if facts.promote != record.to_revision:
        return None
    told = _told(facts, record)
    asked = {"reason": _ASKED.reason, "message": _ASKED.message, "decided_by": _ASKED.by}
    return Next(facts.serving, _stepped(facts, told, Step.PROMOTE, **asked))


def _to_roll_back(facts: Facts, record: UpdateStatus, cause: _Cause) -> Next:
    if facts.serving == record.from_revision:
        size = full_size(record, facts.blue.size, facts.most)
    else:
        size = max(facts.green.size, facts.blue.size)
    rolling = _stepped(
        facts,
        record,
        Step.ROLL_BACK,
        reason=cause.reason,
        message=fitting(cause.message),
        decided_by=cause.by,
        raise_to=size,
    )
    return Next(facts.serving, rolling)


def _rolled_back(facts: Facts, record: UpdateStatus) -> Next:
    cause = _cause_of(record)
    refused = record.soak_started_at is None and cause.by == BY_WORKERS
    over = _finished(facts, record, End.REFUSED if refused else End.ROLLED_BACK, cause)
    failed = None
    if facts.wanted == record.to_revision:
        failed = FailedUpdate(
            revision=record.to_revision,
            settings=settings_hash(facts.settings),
            reason=cause.reason,
            message=cause.message,
            failed_at=wire_time(facts.now),
            retained_until=later(facts.now, seconds(facts.settings.failed_retention)),
        )
    return Next(record.from_revision, failed=failed, finished=over)


def _told(facts: Facts, record: UpdateStatus) -> UpdateStatus:
    """The record with what the evidence says."""
    found = facts.assessment
    return record.model_copy(
        update={
            "verdict": found.outcome,
            "reason": found.reason,
            "message": fitting(found.message),
            "samples": found.samples,
            "checks": found.checks,
            "evidence": found.evidence,
        }
    )


def _switched(facts: Facts, record: UpdateStatus) -> UpdateStatus:
    return _stepped(facts, record, Step.RETAIN, switched_at=wire_time(facts.now))


def _stepped(facts: Facts, record: UpdateStatus, step: Step, **changes: object) -> UpdateStatus:
    return record.model_copy(update={"step": step, "step_started_at": wire_time(facts.now), **changes})


def _cause_of(record: UpdateStatus) -> _Cause:
    return _Cause(record.reason or "Unknown", record.message or "", record.decided_by or BY_OPERATOR)


def _finished(facts: Facts, record: UpdateStatus, end: End, cause: _Cause) -> FinishedUpdate:
    began = timestamp(record.started_at) or facts.now
    return FinishedUpdate(
        from_revision=record.from_revision,
        to_revision=record.to_revision,
        end=end,
        reason=cause.reason,
        message=fitting(cause.message, 1024),
        samples=record.samples,
        duration_seconds=max(0, round((facts.now - began).total_seconds())),
        finished_at=wire_time(facts.now),
        decided_by=cause.by,
    )
