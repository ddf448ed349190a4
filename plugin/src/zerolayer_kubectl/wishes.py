"""What a person may ask of an update: that the new revision takes over, or that it is left."""

from dataclasses import dataclass
from datetime import datetime

from zerolayer_kubectl.pool import (
    ANNOTATION_PROMOTE,
    ANNOTATION_ROLL_BACK,
    PREPARE,
    PROMOTE,
    PROMOTED,
    RETAIN,
    ROLL_BACK,
    UPDATING,
    Pool,
    Update,
)
from zerolayer_kubectl.words import named, span, span_s


class RefusedError(Exception):
    """What was asked for can't be done; the message says why, and what can."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to write on a pool, and what to ask the person before that.

    Attributes:
        annotations: To be set; those that are ``None`` are removed, so that the last word counts.
        stale: Annotations to be removed before that. They say the same already, maybe since an earlier
            update, and the operator goes by when they were written.
        question: What is about to happen.
    """

    revision: str
    annotations: dict[str, str | None]
    stale: tuple[str, ...]
    question: str


def to_promote(pool: Pool, now: datetime) -> Wish:
    """The wish that the canary takes over now.

    Raises:
        RefusedError: There is no canary that could.
    """
    update = _going_on(pool, "promote")
    new = named(update.new)
    if update.step == PREPARE:
        raise RefusedError(
            f"revision {new} is not warm yet, so that it can't be promoted: wait until it is the canary"
        )
    if update.step == PROMOTE:
        raise RefusedError(f"revision {new} is being promoted already")
    if update.step == RETAIN:
        raise RefusedError(f"revision {new} has taken over already")
    if update.step == ROLL_BACK:
        raise RefusedError(f"revision {new} is being rolled back: {update.message or update.reason}")
    soaked = pool.soaked(now)
    after = f" after {span(soaked)} of {span_s(pool.settings.soak_s)}" if soaked is not None else ""
    return Wish(
        revision=update.new.revision,
        annotations={ANNOTATION_PROMOTE: update.new.revision, ANNOTATION_ROLL_BACK: None},
        stale=(ANNOTATION_PROMOTE,) if pool.asked_to_promote == update.new.revision else (),
        question=f"Promote revision {new}{after}; verdict: {update.verdict}, {update.samples} answers?",
    )


def to_roll_back(pool: Pool) -> Wish:
    """The wish that the new revision is left.

    Raises:
        RefusedError: There is none that could be.
    """
    update = _going_on(pool, "roll back")
    if update.step == ROLL_BACK:
        raise RefusedError(f"revision {named(update.new)} is being rolled back already")
    return Wish(
        revision=update.new.revision,
        annotations={ANNOTATION_ROLL_BACK: update.new.revision, ANNOTATION_PROMOTE: None},
        stale=(ANNOTATION_ROLL_BACK,) if pool.asked_to_roll_back == update.new.revision else (),
        question=f"Roll back from revision {named(update.new)} to {named(update.old)}?",
    )


def _going_on(pool: Pool, what: str) -> Update:
    if pool.paused:
        raise RefusedError(
            f"pool {pool.name} is paused, so that the operator does nothing: unset spec.paused"
        )
    if pool.update is not None:
        return pool.update
    raise RefusedError(f"there is nothing to {what}: {_why_none(pool)}")


def _why_none(pool: Pool) -> str:
    if pool.phase is None:
        return f"no operator has looked at pool {pool.name} yet"
    if pool.failed is not None:
        return (
            f"revision {pool.failed.revision} failed ({pool.failed.reason}) and is not tried again until the "
            f"spec changes; `kubectl zerolayer explain {pool.name}` says more"
        )
    if pool.phase == UPDATING and pool.progressing is not None:
        return f"pool {pool.name} has no canary: {pool.progressing.message}"
    serving = f"pool {pool.name} has no update going on"
    last = pool.last
    if last is not None and last.end == PROMOTED:
        back = f", and set the spec back to return to revision {named(last.old)}"
        return f"{serving}; the last one, to revision {named(last.new)}, is over{back}"
    return serving
