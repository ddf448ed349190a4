"""The conditions of a pool: a reason for programs and a sentence for people."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from zerolayer_operator.api.anchor import AnchorSpec
from zerolayer_operator.api.revision import FrozenAnchor
from zerolayer_operator.api.status import Condition, ConditionStatus, ConditionType
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.decide.tuning import Tuning
from zerolayer_operator.decide.update_report import progress
from zerolayer_operator.decide.wire import fitting, wire_time
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Problem
from zerolayer_operator.observe.wording import same_words

WARMING_UP: Final = "WarmingUp"
"""Why a pool is not ready whose first worker is on its way."""

WORKERS_STARTING: Final = "WorkersStarting"
"""Why a pool is not ready though nothing is wrong: it grows, or a worker is replaced."""


@dataclass(frozen=True)
class Finding:
    """What the conditions are made from.

    Attributes:
        floor: How many ready workers make the pool ready.
        waiting: What is in the way of children, but about to be collected as garbage.
    """

    pool: ObservedPool
    plan: Plan
    problem: Problem | None
    warm: bool
    is_ready: bool
    floor: int
    waiting: tuple[ChildKey, ...] = ()

    @property
    def paused(self) -> bool:
        """Whether the user paused the pool."""
        return self.pool.spec is not None and self.pool.spec.paused


@dataclass(frozen=True, slots=True)
class _Verdict:
    holds: bool
    reason: str
    message: str
    problem: Problem | None = None


_PAUSED: Final = _Verdict(holds=False, reason="Paused", message="spec.paused is true: nothing is changed")


def _of_problem(problem: Problem, *, holds: bool) -> _Verdict:
    return _Verdict(holds, problem.reason, problem.message, problem)


def conditions(finding: Finding, now: datetime) -> tuple[Condition, ...]:
    """All conditions; a transition time moves only where a status does."""
    verdicts = {
        ConditionType.READY: _ready(finding),
        ConditionType.PROGRESSING: _progressing(finding),
        ConditionType.WARMED_UP: _warmed_up(finding),
        ConditionType.DEGRADED: _degraded(finding),
    }
    found = tuple(_condition(finding.pool, kind, verdict, now) for kind, verdict in verdicts.items())
    return (*found, *_anchor_current(finding, now), *_scaling_tuned(finding, now))


def _anchor_current(finding: Finding, now: datetime) -> Iterator[Condition]:
    """Whether the revision that serves has the anchor that the spec names, where it names one."""
    pool, decided = finding.pool, finding.plan
    anchor = pool.spec.anchor if pool.spec is not None else None
    if anchor is None:
        return
    verdict = _anchored(finding, anchor, decided)
    yield _condition(pool, ConditionType.ANCHOR_CURRENT, verdict, now)


def _anchored(finding: Finding, anchor: AnchorSpec, decided: Plan) -> _Verdict:
    serving = finding.pool.deployment(decided.serving)
    frozen = serving.frozen.anchor if serving is not None else None
    wanted = FrozenAnchor(version=anchor.version, digest=anchor.digest)
    if frozen == wanted and finding.warm:
        message = f"revision {decided.serving} answers with anchor {anchor.version}"
        return _Verdict(holds=True, reason="AnchorServes", message=message)
    if decided.update is not None:
        return _Verdict(holds=False, reason=decided.update.step, message=progress(decided.update))
    if finding.problem is not None:
        return _of_problem(finding.problem, holds=False)
    if finding.paused:
        return _PAUSED
    message = f"no worker with anchor {anchor.version} is warm yet"
    return _Verdict(holds=False, reason=WARMING_UP, message=message)


def _scaling_tuned(finding: Finding, now: datetime) -> Iterator[Condition]:
    """Whether the window follows the load; what was told before stands while nobody has looked for long."""
    kind, tuning = ConditionType.SCALING_TUNED, finding.plan.tuning
    before = next((item for item in finding.pool.status.conditions or () if item.type == kind), None)
    if before is not None and (not finding.plan.acts or (tuning is not None and tuning.pending)):
        yield before
    elif tuning is not None and tuning.by_load:
        yield _condition(finding.pool, kind, _tuned(finding.plan, tuning), now)


def _tuned(decided: Plan, tuning: Tuning) -> _Verdict:
    if tuning.unknown is None:
        message = "the delay before a scale-down follows the load; status.scaling says how"
        return _Verdict(holds=True, reason="FollowsLoad", message=message)
    # As the status has it, which is not put in other words at every look.
    why = decided.scaling_status.why if decided.scaling_status is not None else tuning.why
    setting = tuning.setting
    message = (
        f"{why}; until then a scale-down waits for {setting.window_s} s and leaves at least "
        f"{setting.floor} worker{'' if setting.floor == 1 else 's'}"
    )
    return _Verdict(holds=False, reason="LoadUnknown", message=message)


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
        message=_repeated(before, pool, verdict) or fitting(verdict.message),
    )


def _repeated(before: Condition | None, pool: ObservedPool, verdict: _Verdict) -> str | None:
    """The message as it stands, where the new one would say the same with other figures in what it quotes."""
    problem = verdict.problem
    if before is None or problem is None or not problem.quote:
        return None
    if (before.reason, before.observed_generation) != (problem.reason, pool.generation):
        return None
    lead, _, remedy = problem.message.partition(problem.quote)
    if not before.message.startswith(lead) or not before.message.endswith(remedy):
        return None
    quoted = before.message.removeprefix(lead).removesuffix(remedy)
    return before.message if problem.vague or same_words(quoted, problem.quote) else None


def _ready(finding: Finding) -> _Verdict:
    if finding.is_ready and finding.floor == 0:
        asleep = finding.pool.spec is not None and finding.pool.spec.autoscaling is not None
        message = "spec.replicas asks for no worker"
        if asleep:
            message = "KEDA starts a worker once spec.autoscaling.metric.query is above 0"
        return _Verdict(holds=True, reason="ScaledToZero", message=message)
    if finding.is_ready:
        return _Verdict(holds=True, reason="WorkersReady", message=_answering(finding))
    if finding.problem is not None:
        return _of_problem(finding.problem, holds=False)
    reason = WORKERS_STARTING if finding.warm else WARMING_UP
    return _Verdict(holds=False, reason=reason, message="not every worker that is asked for can answer yet")


def _answering(finding: Finding) -> str:
    serving = finding.pool.deployment(finding.plan.serving)
    if serving is None or serving.ready >= serving.size:
        return "every worker that is asked for can answer"
    return (
        f"{serving.ready} of {serving.size} workers can answer, and a pool is ready with its fewest, "
        f"{finding.floor}"
    )


def _progressing(finding: Finding) -> _Verdict:
    decided = finding.plan
    if finding.paused:
        return _PAUSED
    if finding.waiting:
        found = ", ".join(f"{key.kind} {key.name}" for key in finding.waiting)
        message = f"{found} of an earlier pool of this name: waiting for the garbage collector"
        return _Verdict(holds=True, reason="WaitingForGarbageCollector", message=message)
    if finding.problem is not None:
        return _of_problem(finding.problem, holds=False)
    if decided.updating:
        return _updating(decided)
    if not finding.is_ready:
        message = f"revision {decided.serving} warms up"
        return _Verdict(holds=True, reason=WARMING_UP, message=message)
    return _Verdict(holds=False, reason="Settled", message=f"revision {decided.serving} serves as asked")


def _updating(decided: Plan) -> _Verdict:
    if decided.update is not None:
        return _Verdict(holds=True, reason=decided.update.step, message=progress(decided.update))
    message = f"revision {decided.wanted} warms up; revision {decided.serving} serves until it is warm"
    return _Verdict(holds=True, reason="Updating", message=message)


def _warmed_up(finding: Finding) -> _Verdict:
    if finding.warm:
        message = f"revision {finding.plan.serving} has been warmed up"
        return _Verdict(holds=True, reason="WorkersWarm", message=message)
    return _Verdict(holds=False, reason=WARMING_UP, message="no worker has been warm yet")


def _degraded(finding: Finding) -> _Verdict:
    if finding.problem is not None:
        return _of_problem(finding.problem, holds=True)
    return _Verdict(holds=False, reason="AsExpected", message="no problem is known")
