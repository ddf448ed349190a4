"""What a pool's status tells of its anchors and of its updates."""

from zerolayer_operator.api.status import HISTORY_LIMIT
from zerolayer_operator.api.update_status import (
    ActiveAnchor,
    AnchorStatus,
    FinishedUpdate,
    Step,
    UpdateStatus,
)
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.observe.state import ObservedPool


def anchor_status(pool: ObservedPool, decided: Plan) -> AnchorStatus | None:
    """The anchors of the revision that serves and of the one that is being introduced."""
    if not decided.acts:
        return pool.status.anchor
    update = decided.update
    active = _anchor(decided, decided.serving)
    other = update.to_revision if update is not None and update.to_revision != decided.serving else None
    canary = _anchor(decided, other)
    return AnchorStatus(active=active, canary=canary) if active or canary else None


def history(pool: ObservedPool, decided: Plan) -> tuple[FinishedUpdate, ...] | None:
    """The last updates, the newest first."""
    known = pool.status.history
    over = decided.finished
    if over is None:
        return known
    anchors = {
        "from_anchor": _version(pool, over.from_revision),
        "to_anchor": _version(pool, over.to_revision),
    }
    return (over.model_copy(update=anchors), *(known or ()))[:HISTORY_LIMIT]


def progress(update: UpdateStatus) -> str:
    """A sentence on how far an update is."""
    old, new, by = update.from_revision, update.to_revision, update.decided_by
    match update.step:
        case Step.PREPARE:
            return f"revision {new} warms up; revision {old} serves"
        case Step.SOAK:
            verdict = f"{update.verdict} after {update.samples} answers"
            why = f"; {update.message}" if update.message else ""
            return (
                f"revision {new} gets {update.weight}% of the requests until {update.soak_ends_at} at least; "
                f"verdict: {verdict}{why}"
            )
        case Step.AWAIT_PROMOTION:
            return (
                f"revision {new} has soaked ({update.verdict}: {update.message}) and waits for "
                f"`kubectl zerolayer promote`"
            )
        case Step.PROMOTE:
            return f"revision {new} grows to take over from revision {old}, as decided by {by}"
        case Step.RETAIN:
            return f"revision {new} serves; revision {old} stays for spec.update.blueRetention"
        case Step.ROLL_BACK:
            return f"back to revision {old}, as decided by {by}: {update.message}"


def _anchor(decided: Plan, revision: str | None) -> ActiveAnchor | None:
    for item in decided.revisions:
        if item.revision == revision and item.frozen.anchor is not None:
            anchor = item.frozen.anchor
            return ActiveAnchor(version=anchor.version, digest=anchor.digest, revision=item.revision)
    return None


def _version(pool: ObservedPool, revision: str) -> str | None:
    deployment = pool.deployment(revision)
    anchor = deployment.frozen.anchor if deployment is not None else None
    return anchor.version if anchor is not None else None
