"""Why an update is where it is, what it waits for, and what would make it go on or back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from zerolayer_kubectl.pool import (
    AWAIT_PROMOTION,
    LABEL_POOL,
    LABEL_REVISION,
    MANUAL,
    NO_REQUESTS,
    PREPARE,
    PROMOTE,
    RETAIN,
    ROLL_BACK,
    SHARE_LIMIT,
    SOAK,
    WISH_PROMOTE,
    WISH_ROLL_BACK,
    Failed,
    Pool,
    Update,
)
from zerolayer_kubectl.remedies import remedy
from zerolayer_kubectl.screen import requests
from zerolayer_kubectl.words import moment, named, span, span_s, workers, wrapped

Sentences = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say, each part in sentences."""

    now: Sentences
    waits_for: Sentences = ()
    goes_on: Sentences = ()
    goes_back: Sentences = ()
    to_do: Sentences = ()

    def lines(self, width: int | None = None) -> list[str]:
        """As text; `width` is a terminal's, in characters."""
        told: list[str] = []
        for field, title in _TITLES.items():
            found: Sentences = getattr(self, field)
            if found:
                told += [*([""] if told else []), title, *(f"  {sentence}" for sentence in found)]
        return wrapped(told, width, 4)

    def document(self, pool: Pool) -> dict[str, Any]:
        """For programs."""
        return {
            "pool": pool.name,
            "namespace": pool.namespace,
            "now": self.now,
            "waitsFor": self.waits_for,
            "goesOn": self.goes_on,
            "goesBack": self.goes_back,
            "toDo": self.to_do,
        }


_OPERATORS: Final = "app.kubernetes.io/name=zerolayer-operator"

_VERBS: Final = {WISH_PROMOTE: "promote", WISH_ROLL_BACK: "roll back"}

_TITLES: Final = {
    "now": "What is going on",
    "waits_for": "What it waits for",
    "goes_on": "What makes it go on",
    "goes_back": "What makes it go back",
    "to_do": "What you can do",
}


def explain(pool: Pool, now: datetime) -> Explanation:
    """Explains a pool's update, or that there is none."""
    if pool.phase is None:
        return _unseen(pool)
    told = _of_update(pool, pool.update, now) if pool.update is not None else _of_none(pool, now)
    return replace(told, now=(*told.now, *_asked(pool)), waits_for=(*_held_up(pool), *told.waits_for))


def _held_up(pool: Pool) -> Iterator[str]:
    """What keeps the operator from going on, whatever the update's step."""
    if pool.problem is not None and pool.failed is None:
        yield f"In the way: {_sentence(pool.problem.reason, pool.problem.message)}"
    if not pool.seen:
        yield "The operator has not looked at the latest spec yet."
    if pool.paused:
        yield "The pool is paused: the operator does nothing until spec.paused is unset."


def _asked(pool: Pool) -> Iterator[str]:
    """What people have asked for by annotation; one about another revision decides nothing."""
    update = pool.update
    if update is None:
        return
    for wish in pool.wished:
        yield f"Somebody has asked to {_VERBS[wish]} revision {update.new.revision}."
    for wish in pool.annotated:
        if wish in update.standing:
            yield f"The annotation zerolayer.dev/{wish} is of an earlier update and decides nothing."


def _unseen(pool: Pool) -> Explanation:
    return Explanation(
        now=(f"No operator has looked at pool {pool.name} yet.",),
        to_do=(
            f"See that the operator runs: `kubectl get pods --all-namespaces --selector {_OPERATORS}`.",
            "See that it watches this namespace: the chart's watchNamespaces.",
        ),
    )


def _of_none(pool: Pool, now: datetime) -> Explanation:
    if pool.failed is not None:
        return _of_failed(pool, pool.failed, now)
    serving = f"Revision {named(pool.serving)} serves." if pool.serving else "No revision serves yet."
    if pool.progressing is not None and pool.progressing.holds:
        return Explanation(now=(serving,), waits_for=(_sentence(pool.progressing.message),))
    told = (serving, "No update is going on.")
    if pool.last is not None:
        last = pool.last
        over = f"The last one, to revision {named(last.new)}, ended at {moment(last.finished_at)}"
        told = (*told, _sentence(over, last.end, last.reason, last.message))
    return Explanation(now=told, goes_on=("An update begins when the spec asks for another revision.",))


def _of_failed(pool: Pool, failed: Failed, now: datetime) -> Explanation:
    serving = named(pool.serving) if pool.serving else "no revision"
    to_do = [remedy(failed.reason)]
    if failed.retained_until is not None and failed.retained_until > now:
        left = span(failed.retained_until - now)
        to_do.append(f"One of its workers is kept for {left} more: {_logs(pool, failed.revision)}.")
    return Explanation(
        now=(
            _sentence(
                f"Revision {failed.revision}, which the spec asks for, failed", failed.reason, failed.message
            ),
            f"Revision {serving} serves, and answers every request.",
        ),
        goes_on=(
            "It is not tried again until the spec asks for another revision, or spec.update changes.",
            "Setting the spec back to what serves clears this.",
        ),
        to_do=tuple(to_do),
    )


def _of_update(pool: Pool, update: Update, now: datetime) -> Explanation:
    step = _STEPS.get(update.step)
    if step is None:
        return Explanation(now=(f"The update is at step {update.step}, which this plugin does not know.",))
    return step(pool, update, now)


def _prepare(pool: Pool, update: Update, _now: datetime) -> Explanation:
    soak = (
        f"it gets {pool.settings.canary_weight}% of the requests for at least {span_s(pool.settings.soak_s)}"
    )
    then = "takes over at once" if pool.settings.strategy == "Immediate" else f"is the canary: {soak}"
    return Explanation(
        now=(
            f"Revision {named(update.new)} is made beside revision {named(update.old)}.",
            f"Revision {update.old.revision} answers every request.",
        ),
        waits_for=(f"Workers of revision {update.new.revision} that are warm: {workers(update.new)}.",),
        goes_on=(f"As soon as they are warm, revision {update.new.revision} {then}.",),
        goes_back=(
            "A worker that refuses its anchor, or that is not warm in time, ends the update.",
            _SET_BACK,
        ),
        to_do=(f"Look at its workers: {_logs(pool, update.new.revision)}.", _roll_back(pool)),
    )


def _soak(pool: Pool, update: Update, now: datetime) -> Explanation:
    soaked = pool.soaked(now) or timedelta()
    manual = pool.settings.promotion == MANUAL
    longest = span_s(pool.settings.max_soak_s)
    end = "" if manual else f"Without a verdict within {longest} it is rolled back."
    return Explanation(
        now=(
            f"Revision {named(update.new)} is the canary beside revision {named(update.old)}.",
            f"It gets {requests(pool, update)}.",
            f"It has soaked for {span(soaked)} of {span_s(pool.settings.soak_s)}.",
            _verdict(update),
        ),
        waits_for=_awaited(pool, update, soaked),
        goes_on=(_after_the_soak(pool, update),),
        goes_back=tuple(filter(None, ("A check that fails rolls it back at once.", end, _SET_BACK))),
        to_do=(*_for_a_verdict(pool, update), _promote(pool), _roll_back(pool)),
    )


def _after_the_soak(pool: Pool, update: Update) -> str:
    soak = span_s(pool.settings.soak_s)
    if pool.settings.promotion == MANUAL:
        return f"After {soak} of soak a person may promote it."
    if update.reason != NO_REQUESTS:
        return f"After {soak} of soak it is promoted if the verdict is good."
    if update.share:
        return "Nothing by itself: the soak has no good end without requests."
    return "As soon as one of its workers is ready again, it gets requests."


def _for_a_verdict(pool: Pool, update: Update) -> Iterator[str]:
    """What makes a verdict possible on a canary that gets no requests, or spares one."""
    if update.reason != NO_REQUESTS:
        return
    if not update.share:
        yield f"Look at its workers: {_logs(pool, update.new.revision)}."
        return
    yield "Have it judged by questions whose answers are known: spec.update.golden."
    weight = -(-update.share // SHARE_LIMIT)
    yield (
        "Give it requests: through a gateway (spec.routing.gateway, and the chart's gateway.enabled), with "
        f"spec.update.canaryWeight of at least {weight}, or with more workers of the revision that serves."
    )
    if pool.settings.promotion != MANUAL:
        yield "Decide yourself: set spec.update.promotion to Manual, and look at it before you promote it."
    yield "Do without a verdict: set spec.update.strategy to Immediate."


def _awaited(pool: Pool, update: Update, soaked: timedelta) -> Sentences:
    """What is still lacking for a good verdict."""
    left = timedelta(seconds=pool.settings.soak_s) - soaked
    lacking = pool.needed - update.samples
    unasked = update.reason == NO_REQUESTS
    found: list[str] = []
    if left > timedelta() and (not unasked or pool.settings.promotion == MANUAL):
        found.append(f"The rest of the soak: {span(left)}.")
    if unasked:
        return (*found, "Requests: it gets none, and without any there is no verdict.")
    if lacking > 0:
        found.append(f"{lacking} more answers of the canary, of {pool.needed} that are needed.")
    found += [
        _sentence(f"Data for check {check.name}", check.message or "none yet")
        for check in update.checks
        if check.result == "NoData"
    ]
    if not found and update.verdict == "Undecided":
        found.append(_sentence("A verdict", update.reason, update.message))
    return tuple(found)


def _await_promotion(pool: Pool, update: Update, _now: datetime) -> Explanation:
    return Explanation(
        now=(
            f"Revision {named(update.new)} has soaked and gets {requests(pool, update)}.",
            _verdict(update),
        ),
        waits_for=("A person, because spec.update.promotion is Manual.",),
        goes_on=(f"`{_command(pool, 'promote')}`.",),
        goes_back=("A check that fails rolls it back at once.", _SET_BACK),
        to_do=(_promote(pool), _roll_back(pool)),
    )


def _promotes(pool: Pool, update: Update, _now: datetime) -> Explanation:
    return Explanation(
        now=(
            f"Revision {named(update.new)} grows to carry every request, as decided by {_decider(update)}.",
            f"Until then it gets {requests(pool, update)}.",
        ),
        waits_for=(
            f"As many warm workers as the load needs: {workers(update.new)}.",
            f"Revision {update.old.revision} has {workers(update.old)}.",
        ),
        goes_on=("As soon as they are warm, it takes over.",),
        goes_back=("A check that fails rolls it back at once.", _SET_BACK),
        to_do=(_roll_back(pool),),
    )


def _retain(pool: Pool, update: Update, now: datetime) -> Explanation:
    kept = timedelta(seconds=pool.settings.blue_retention_s)
    left = kept - (now - update.switched_at) if update.switched_at is not None else kept
    return Explanation(
        now=(
            f"Revision {named(update.new)} has taken over and answers every request that names no other.",
            f"Revision {named(update.old)} stays for conversations that name it, and for the way back.",
        ),
        waits_for=(f"The end of spec.update.blueRetention: {span(max(left, timedelta()))}.",),
        goes_on=(f"After that revision {update.old.revision} is removed.",),
        goes_back=(f"No worker of revision {update.new.revision} answering, or a person.", _SET_BACK),
        to_do=(_roll_back(pool),),
    )


def _rolls_back(pool: Pool, update: Update, _now: datetime) -> Explanation:
    wanted = f" of {update.raise_to} that the load needs" if update.raise_to is not None else ""
    return Explanation(
        now=(
            _sentence(
                f"Revision {named(update.new)} is left, as decided by {_decider(update)}",
                update.reason,
                update.message,
            ),
        ),
        waits_for=(f"Warm workers of revision {named(update.old)}{wanted}: {workers(update.old)}.",),
        goes_on=("Then the update is over; `kubectl zerolayer history` has the reason.",),
        to_do=(remedy(update.reason or ""), f"Look at its workers: {_logs(pool, update.new.revision)}."),
    )


_STEPS: Final[dict[str, Callable[[Pool, Update, datetime], Explanation]]] = {
    PREPARE: _prepare,
    SOAK: _soak,
    AWAIT_PROMOTION: _await_promotion,
    PROMOTE: _promotes,
    RETAIN: _retain,
    ROLL_BACK: _rolls_back,
}

_SET_BACK: Final = "Setting the spec back to the former revision does so too."


def _sentence(*told: str | None) -> str:
    """What the operator tells without one, with a full stop."""
    return ": ".join(item for item in told if item).rstrip(".") + "."


def _verdict(update: Update) -> str:
    verdict = f"{update.verdict} ({update.reason})" if update.reason else update.verdict
    return _sentence("Verdict so far", verdict, update.message)


def _decider(update: Update) -> str:
    return "a person" if update.decided_by == "person" else f"the {update.decided_by or 'operator'}"


def _command(pool: Pool, verb: str) -> str:
    return f"kubectl zerolayer {verb} {pool.name} --namespace {pool.namespace}"


def _promote(pool: Pool) -> str:
    return f"Promote it now: `{_command(pool, 'promote')}`."


def _roll_back(pool: Pool) -> str:
    return f"Leave it now: `{_command(pool, 'rollback')}`."


def _logs(pool: Pool, revision: str) -> str:
    selector = f"{LABEL_POOL}={pool.name},{LABEL_REVISION}={revision}"
    return f"`kubectl logs --namespace {pool.namespace} --selector {selector}`"
