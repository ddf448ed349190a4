"""Pools in the middle of an update, as the operator's own models write them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import POOL_LABEL, REVISION_LABEL, manifest
from zerolayer_operator.api.status import Condition, ConditionStatus, Phase, PoolStatus
from zerolayer_operator.api.update_status import (
    ActiveAnchor,
    AnchorStatus,
    CheckResult,
    CheckStatus,
    End,
    FailedUpdate,
    FinishedUpdate,
    Outcome,
    Step,
    UpdateStatus,
)
from zerolayer_operator.decide.wire import wire_time

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
POOL: Final = "facts"
NAMESPACE: Final = "team"
BLUE: Final = "3f2a91c0de"
GREEN: Final = "9b1c22d4aa"
DIGEST: Final = f"sha256:{'0' * 64}"
FEW: Final = "180 of the 500 requests on green that a verdict needs"
CHECKS: Final = (
    CheckStatus(name="errors", result=CheckResult.OK, message="error rate 0 % on green"),
    CheckStatus(name="consistency", result=CheckResult.NO_DATA, message="no request was asked again"),
    CheckStatus(name="dds", result=CheckResult.OFF, message="off in this pool"),
)
_AFTER: Final = frozenset({Step.PROMOTE, Step.RETAIN, Step.ROLL_BACK})


def ago(**span: float) -> str:
    """A time before `NOW`, as a status has it."""
    return wire_time(NOW - timedelta(**span))


def update_at(step: Step, **changes: Any) -> UpdateStatus:
    """An update from `BLUE` to `GREEN` at a step, six hours into a soak of 24 where there is one."""
    soaks = step != Step.PREPARE
    found: dict[str, Any] = {
        "step": step,
        "from_revision": BLUE,
        "to_revision": GREEN,
        "started_at": ago(hours=6, minutes=2),
        "step_started_at": ago(hours=6) if step == Step.SOAK else ago(minutes=2),
        "soak_started_at": ago(hours=6) if soaks else None,
        "switched_at": ago(minutes=2) if step == Step.RETAIN else None,
        "weight": 10 if step in {Step.SOAK, Step.AWAIT_PROMOTION, Step.PROMOTE} else 0,
        "verdict": Outcome.UNDECIDED,
        "reason": "TooFewSamples" if soaks else None,
        "message": FEW if soaks else None,
        "samples": 180 if soaks else 0,
        "checks": CHECKS if soaks else (),
        "decided_by": "verdict" if step in _AFTER else "operator",
        "evidence": "{}" if soaks else None,
    }
    return UpdateStatus(**{**found, **changes})


def finished(end: End, **changes: Any) -> FinishedUpdate:
    """An update from `BLUE` to `GREEN` that is over."""
    found: dict[str, Any] = {
        "from_revision": BLUE,
        "to_revision": GREEN,
        "from_anchor": "v1",
        "to_anchor": "v2",
        "end": end,
        "reason": "NoWorse" if end == End.PROMOTED else "WrongAnswers",
        "message": "no worse than blue" if end == End.PROMOTED else "12 of 50 golden answers as expected",
        "samples": 2210,
        "duration_seconds": 86_700,
        "finished_at": ago(hours=1),
        "decided_by": "verdict",
    }
    return FinishedUpdate(**{**found, **changes})


def failed(**changes: Any) -> FailedUpdate:
    """`GREEN` after it was left."""
    found: dict[str, Any] = {
        "revision": GREEN,
        "settings": "0123456789abcdef",
        "reason": "WrongAnswers",
        "message": "12 of 50 golden answers as expected",
        "failed_at": ago(minutes=20),
        "retained_until": ago(minutes=-40),
    }
    return FailedUpdate(**{**found, **changes})


def condition(kind: str, reason: str, message: str, *, holds: bool) -> Condition:
    """A condition of a pool."""
    return Condition(
        type=kind,
        status=ConditionStatus.TRUE if holds else ConditionStatus.FALSE,
        observed_generation=1,
        last_transition_time=ago(hours=1),
        reason=reason,
        message=message,
    )


def status_with(update: UpdateStatus | None = None, **changes: Any) -> Manifest:
    """A pool's status during an update, or without one."""
    serves_new = update is not None and update.step == Step.RETAIN
    anchors = {
        revision: ActiveAnchor(version=version, digest=DIGEST, revision=revision)
        for revision, version in ((BLUE, "v1"), (GREEN, "v2"))
    }
    serving, other = (GREEN, BLUE) if serves_new else (BLUE, GREEN)
    found: dict[str, Any] = {
        "phase": Phase.UPDATING if update is not None else Phase.READY,
        "observed_generation": 1,
        "ready": "3/3",
        "serving_revision": serving,
        "anchor": AnchorStatus(
            active=anchors[serving], canary=anchors[other] if update is not None else None
        ),
        "update": update,
    }
    return PoolStatus(**{**found, **changes}).to_wire()


def body_with(status: Manifest, *, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A pool as the API server sends it."""
    body = manifest(POOL, NAMESPACE, spec)
    body["metadata"] |= {"generation": 1, "annotations": annotations or {}}
    return body | {"status": status}


def revision_deployment(revision: str, size: int, ready: int, *, pool: str = POOL) -> Manifest:
    """What the plugin reads of a revision's Deployment."""
    labels = {POOL_LABEL: pool, REVISION_LABEL: revision}
    return {
        "metadata": {"name": f"{pool}-{revision}", "labels": labels},
        "spec": {"replicas": size},
        "status": {"readyReplicas": ready} if ready else {},
    }
