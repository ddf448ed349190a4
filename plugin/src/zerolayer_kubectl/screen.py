"""What `kubectl zerolayer status` and `history` show."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from zerolayer_kubectl.fields import Object, number, part, text
from zerolayer_kubectl.pool import (
    PREPARE,
    PROMOTE,
    SOAK,
    TRYING,
    WISH_PROMOTE,
    WISH_ROLL_BACK,
    Finished,
    Pool,
    Side,
    Update,
)
from zerolayer_kubectl.words import bar, columns, moment, named, span, span_s, workers, wrapped

_LABEL: Final = 11
"""Width of the column of labels."""

_RECEIVING: Final = TRYING | {PROMOTE}

Row = tuple[str, str]


def screen(pool: Pool, now: datetime, width: int | None = None) -> list[str]:
    """One screen on a pool and its update.

    Args:
        pool: The pool.
        now: The time.
        width: Of the terminal, in characters; ``None`` where there is none.
    """
    lines = (f"{label.upper():<{_LABEL}} {value}".rstrip() for label, value in _rows(pool, now))
    return wrapped(lines, width, _LABEL + 1)


def line(pool: Pool) -> str:
    """The same in one line, without what only passing time changes."""
    update = pool.update
    if update is None:
        over = f"; last update: to {named(pool.last.new)}, {_end(pool.last)}" if pool.last else ""
        return f"{pool.phase or 'not seen yet'}: {_serving(pool, ' ')}{over}"
    sides = f"{update.old.revision} {workers(update.old)}, {update.new.revision} {workers(update.new)}"
    told = f"{update.verdict} after {update.samples} answers"
    reason = f", {update.reason}" if update.reason else ""
    problem = f"; {pool.problem.reason}" if pool.problem else ""
    gets = f"{update.new.revision} gets {requests(pool, update)}"
    return f"{update.step}: {sides}; {gets}; {told}{reason}{problem}"


def document(pool: Pool, now: datetime) -> dict[str, Any]:
    """The same for programs; what the status holds, and the sizes of both sides."""
    update = pool.update
    soaked = pool.soaked(now)
    told = part(pool.body, "update")
    return {
        "pool": pool.name,
        "namespace": pool.namespace,
        "phase": pool.phase,
        "upToDate": pool.seen,
        "serving": _side(pool.serving),
        "other": _side(pool.other),
        "update": {key: value for key, value in told.items() if key != "evidence"} or None,
        "soak": {
            "elapsedSeconds": round(soaked.total_seconds()),
            "totalSeconds": pool.settings.soak_s,
            "longestSeconds": pool.settings.max_soak_s,
        }
        if update is not None and soaked is not None
        else None,
        "scaling": part(pool.body, "scaling") or None,
        "problem": {"reason": pool.problem.reason, "message": pool.problem.message} if pool.problem else None,
        "failed": part(pool.body, "failed") or None,
        "asked": {
            wish: update.new.revision if update is not None and wish in pool.wished else None
            for wish in (WISH_PROMOTE, WISH_ROLL_BACK)
        },
    }


def history(pool: Pool, *, wide: bool) -> list[str]:
    """A table of the last updates, the newest first."""
    head = ("FINISHED", "FROM", "TO", "ANCHOR", "END", "REASON", "SAMPLES", "TOOK", "BY")
    rows = [head, *(_past(item) for item in pool.history)]
    if wide:
        messages = ("MESSAGE", *(item.message for item in pool.history))
        return columns([(*row, message) for row, message in zip(rows, messages, strict=True)])
    return columns(rows)


def progress(pool: Pool, now: datetime) -> str | None:
    """How far the soak is."""
    soaked, total = pool.soaked(now), timedelta(seconds=pool.settings.soak_s)
    if soaked is None or pool.update is None or pool.update.step != SOAK:
        return None
    picture = bar(soaked / total if total else 1.0)
    most = timedelta(seconds=pool.settings.max_soak_s)
    longer = f", extended to at most {span(most)}" if soaked > total else ""
    return f"{picture} {span(soaked)} of {span(total)}{longer}"


def requests(pool: Pool, update: Update) -> str:
    """Which requests the revision that is being introduced gets."""
    wanted = pool.settings.canary_weight
    if pool.serving is not None and pool.serving.revision == update.new.revision:
        return "all requests"
    if update.step not in _RECEIVING:
        return "no requests before it is warm" if update.step == PREPARE else "no new requests"
    if update.share is None:
        return f"{update.weight}% of the requests"
    if update.weight == 0:
        return f"no requests: {update.share}% of the ready workers would be more than twice {wanted}%"
    return f"{update.share}% of the requests, as of the ready workers ({wanted}% wanted, no gateway)"


def _rows(pool: Pool, now: datetime) -> Iterator[Row]:
    yield "pool", f"{pool.name} in namespace {pool.namespace}"
    stale = "" if pool.seen else "; the operator has not looked at the latest spec yet"
    yield "phase", f"{pool.phase or 'unknown'}{stale}"
    yield "serving", _serving(pool)
    update = pool.update
    if update is not None:
        yield from _of_update(pool, update, now)
    yield from _of_scaling(part(pool.body, "scaling"))
    yield from _asked(pool)
    if pool.problem is not None:
        yield "problem", f"{pool.problem.reason}: {pool.problem.message}"
    if pool.failed is not None:
        kept = f"; a worker is kept until {moment(pool.failed.retained_until)}"
        yield "failed", f"revision {pool.failed.revision}, {pool.failed.reason}{kept}"
    if update is None and pool.last is not None:
        yield "last update", f"to {named(pool.last.new)}: {_end(pool.last)}, {moment(pool.last.finished_at)}"


def _of_update(pool: Pool, update: Update, now: datetime) -> Iterator[Row]:
    served = pool.serving is not None and pool.serving.revision == update.new.revision
    if served:
        yield "former", f"{named(update.old)}   {workers(update.old)}"
    else:
        yield "canary", f"{named(update.new)}   {workers(update.new)}   {requests(pool, update)}"
    since = f" for {span(now - update.step_started_at)}" if update.step_started_at else ""
    by = f", by {update.decided_by}" if update.decided_by else ""
    yield "step", f"{update.step}{since}{by}"
    soak = progress(pool, now)
    if soak is not None:
        yield "soak", soak
    if update.soak_started_at is not None:
        needed = f"{pool.needed} needed" if pool.needed else "none needed: the golden set judges"
        yield "samples", f"{update.samples}, {needed}"
    told = ": ".join(item for item in (update.reason, update.message) if item)
    yield "verdict", f"{update.verdict}{f' ({told})' if told else ''}"
    rows = columns([(check.result, check.name, check.message) for check in update.checks])
    for index, row in enumerate(rows):
        yield "" if index else "checks", row


def _of_scaling(scaling: Object) -> Iterator[Row]:
    window = text(scaling, "window")
    if window is None:
        return
    hold = number(scaling, "hold")
    held = f", at least {hold} workers" if hold is not None else ""
    why = text(scaling, "why")
    yield "window", f"{window}{held}{f': {why}' if why else ''}"


def _asked(pool: Pool) -> Iterator[Row]:
    update = pool.update
    if update is None:
        return
    for wish in pool.wished:
        yield "asked", f"to {wish} revision {update.new.revision}, by annotation zerolayer.dev/{wish}"
    for wish in pool.annotated:
        if wish in update.standing:
            yield "annotation", f"zerolayer.dev/{wish} is of an earlier update and decides nothing"


def _serving(pool: Pool, gap: str = "   ") -> str:
    serving = pool.serving
    if serving is None:
        return "no revision serves yet"
    return f"{named(serving)}{gap}{workers(serving)}"


def _end(over: Finished) -> str:
    return f"{over.end} ({over.reason})" if over.reason else over.end


def _past(over: Finished) -> tuple[str, ...]:
    anchors = f"{over.old.anchor or '-'} > {over.new.anchor or '-'}"
    return (
        moment(over.finished_at),
        over.old.revision,
        over.new.revision,
        anchors,
        over.end,
        over.reason,
        str(over.samples),
        span_s(over.duration_s),
        over.decided_by,
    )


def _side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "revision": side.revision,
        "anchor": side.anchor,
        "replicas": side.size,
        "readyReplicas": side.ready,
    }
