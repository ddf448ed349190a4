"""The conditions of a pool: a reason for programs and a sentence for people."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from zerolayer_operator.api.status import Condition, ConditionStatus, ConditionType
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.observe.state import ObservedPool, Problem

_MESSAGE_LIMIT: Final = 4096


@dataclass(frozen=True)
class Finding:
    """What the conditions are made from.

    Attributes:
        floor: How many ready workers make the pool ready.
    """

    pool: ObservedPool
    plan: Plan
    problem: Problem | None
    warm: bool
    is_ready: bool
    floor: int

    @property
    def paused(self) -> bool:
        """Whether the user paused the pool."""
        return self.pool.spec is not None and self.pool.spec.paused


@dataclass(frozen=True, slots=True)
class _Verdict:
    holds: bool
    reason: str
    message: str


def conditions(finding: Finding, now: datetime) -> tuple[Condition, ...]:
    """All conditions; a transition time moves only where a status does."""
    verdicts = {
        ConditionType.READY: _ready(finding),
        ConditionType.PROGRESSING: _progressing(finding),
        ConditionType.WARMED_UP: _warmed_up(finding),
        ConditionType.DEGRADED: _degraded(finding),
    }
    return tuple(_condition(finding.pool, kind, verdict, now) for kind, verdict in verdicts.items())


def _condition(pool: ObservedPool, kind: ConditionType, verdict: _Verdict, now: datetime) -> Condition:
    status = ConditionStatus.TRUE if verdict.holds else ConditionStatus.FALSE
    before = next((item for item in pool.status.conditions or () if item.type == kind), None)
    unchanged = before is not None and before.status == status
    return Condition(
        type=kind.value,
        status=status,
        observed_generation=pool.generation,
        last_transition_time=before.last_transition_time if before and unchanged else wire_time(now),
        reason=verdict.reason,
        message=_fitting(verdict.message),
    )


def _fitting(message: str) -> str:
    """What others say and a message quotes may be of any length; the schema bounds it."""
    return message if len(message) <= _MESSAGE_LIMIT else message[: _MESSAGE_LIMIT - 1] + "…"


def wire_time(moment: datetime) -> str:
    """A moment as Kubernetes writes it: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _ready(finding: Finding) -> _Verdict:
    if finding.is_ready and finding.floor == 0:
        return _Verdict(holds=True, reason="ScaledToZero", message="spec.replicas asks for no worker")
    if finding.is_ready:
        return _Verdict(
            holds=True, reason="WorkersReady", message="every worker that is asked for can answer"
        )
    if finding.problem is not None:
        return _Verdict(holds=False, reason=finding.problem.reason, message=finding.problem.message)
    reason = "WorkersMissing" if finding.warm else "WarmingUp"
    return _Verdict(holds=False, reason=reason, message="not every worker that is asked for can answer yet")


def _progressing(finding: Finding) -> _Verdict:
    decided = finding.plan
    if finding.paused:
        return _Verdict(holds=False, reason="Paused", message="spec.paused is true: nothing is changed")
    if finding.problem is not None:
        return _Verdict(holds=False, reason=finding.problem.reason, message=finding.problem.message)
    if decided.updating:
        message = f"revision {decided.wanted} warms up; revision {decided.serving} serves until it is warm"
        return _Verdict(holds=True, reason="Updating", message=message)
    if not finding.is_ready:
        message = f"revision {decided.serving} warms up"
        return _Verdict(holds=True, reason="WarmingUp", message=message)
    return _Verdict(holds=False, reason="Settled", message=f"revision {decided.serving} serves as asked")


def _warmed_up(finding: Finding) -> _Verdict:
    if finding.warm:
        message = f"revision {finding.plan.serving} has been warmed up"
        return _Verdict(holds=True, reason="WorkersWarm", message=message)
    return _Verdict(holds=False, reason="WarmingUp", message="no worker has been warm yet")


def _degraded(finding: Finding) -> _Verdict:
    if finding.problem is not None:
        return _Verdict(holds=True, reason=finding.problem.reason, message=finding.problem.message)
    return _Verdict(holds=False, reason="AsExpected", message="no problem is known")
