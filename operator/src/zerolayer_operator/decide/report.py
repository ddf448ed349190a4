"""The status that a pool gets."""

import math
from collections.abc import Sequence
from datetime import datetime

from zerolayer_operator.api import names
from zerolayer_operator.api.status import (
    ConditionStatus,
    ConditionType,
    Phase,
    PoolStatus,
    RevisionStatus,
    WarmupStatus,
)
from zerolayer_operator.decide.conditions import Finding, conditions
from zerolayer_operator.decide.plan import Plan, PlannedRevision, is_warm
from zerolayer_operator.decide.problems import first_problem
from zerolayer_operator.decide.sizing import ready_floor
from zerolayer_operator.decide.update_report import anchor_status, history
from zerolayer_operator.observe.state import ChildKey, ObservedPod, ObservedPool, Problem


def report(
    pool: ObservedPool,
    decided: Plan,
    refused: tuple[Problem, ...],
    now: datetime,
    waiting: tuple[ChildKey, ...] = (),
) -> PoolStatus:
    """The status, given what was observed, decided, and what came of carrying it out.

    Args:
        pool: The pool as observed.
        decided: The plan.
        refused: What the API server refused.
        now: The time.
        waiting: What is in the way of children, but about to be collected as garbage.
    """
    problem = first_problem(pool, decided, refused, now)
    live = pool.deployment(decided.serving)
    ready, size = (live.ready, live.size) if live is not None else (0, 0)
    floor = ready_floor(pool.spec, live.size if live else None) if pool.spec is not None else size
    finding = Finding(
        pool=pool,
        plan=decided,
        problem=problem,
        warm=live is not None and is_warm(pool, live),
        # Pods that are ready answer, whether or not the Deployment's latest size has been acted on yet.
        is_ready=live is not None and live.ready >= floor and live.size >= floor,
        floor=floor,
        waiting=waiting,
    )
    found = conditions(finding, now)
    return PoolStatus(
        phase=_phase(finding),
        observed_generation=pool.generation,
        replicas=live.existing if live is not None else 0,
        ready_replicas=ready,
        ready=f"{ready}/{size if live is not None else floor}",
        selector=_selector(pool, decided),
        serving_revision=decided.serving,
        revisions=_revisions(pool, decided) or None,
        warmup=_warmup(pool, decided) or pool.status.warmup,
        scaling=decided.scaling_status if decided.acts else pool.status.scaling,
        anchor=anchor_status(pool, decided),
        update=decided.update if decided.acts else pool.status.update,
        failed=decided.failed if decided.acts else pool.status.failed,
        history=history(pool, decided),
        conditions=found,
    )


def condition_holds(status: PoolStatus, kind: ConditionType) -> bool:
    """Whether a status says that a condition holds."""
    return any(item.type == kind and item.status == ConditionStatus.TRUE for item in status.conditions or ())


def _phase(finding: Finding) -> Phase:
    if finding.paused:
        return Phase.PAUSED
    if finding.problem is not None:
        return Phase.DEGRADED
    if finding.plan.updating:
        return Phase.UPDATING
    if finding.is_ready:
        return Phase.READY
    scheduled = any(pod.scheduled_at is not None and not pod.deleting for pod in finding.pool.pods)
    return Phase.WARMING_UP if scheduled else Phase.PENDING


def _selector(pool: ObservedPool, decided: Plan) -> str | None:
    if decided.serving is None:
        return None
    return names.selector_string(names.revision_selector(pool.name, decided.serving))


def _revisions(pool: ObservedPool, decided: Plan) -> tuple[RevisionStatus, ...]:
    if not decided.acts:
        return pool.status.revisions or ()
    return tuple(_revision(pool, item) for item in decided.revisions)


def _revision(pool: ObservedPool, item: PlannedRevision) -> RevisionStatus:
    return RevisionStatus(
        name=item.revision,
        image=item.frozen.image,
        model_commit=item.frozen.model_commit,
        model_image=item.frozen.model_image,
        anchor_image=item.frozen.anchor_image,
        unpinned=item.frozen.unpinned,
        warm=item.live is not None and is_warm(pool, item.live),
    )


def _warmup(pool: ObservedPool, decided: Plan) -> WarmupStatus | None:
    """Seconds from scheduled to ready over the serving workers that are ready now."""
    if decided.spec is None:
        return None
    longest = decided.spec.warmup.timeout_seconds
    found = (_start_up(pod, longest) for pod in pool.pods if pod.revision == decided.serving)
    taken = sorted(seconds for seconds in found if seconds is not None)
    if not taken:
        return None
    return WarmupStatus(p50_seconds=_quantile(taken, 0.5), p95_seconds=_quantile(taken, 0.95))


def _start_up(pod: ObservedPod, longest: float) -> float | None:
    """How long a worker took to its first readiness.

    A later one, after a restart or an outage of the node, tells nothing about a start: the startup probe
    would have ended a warm-up of that length.
    """
    if pod.scheduled_at is None or pod.container_started_at is None or pod.ready_at is None:
        return None
    if (pod.ready_at - pod.container_started_at).total_seconds() > longest:
        return None
    return max(0.0, (pod.ready_at - pod.scheduled_at).total_seconds())


def _quantile(ordered: Sequence[float], share: float) -> int:
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)])
