"""The Events that tell decisions, each once.

An Event's name derives from the pool's UID and a key that names the decision. It is created before the
decision is carried out or recorded: whoever is killed in between makes the same decision again, and the API
server turns the second Event of that name away.
"""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import AUTOSCALER, EVENT, SCALED_OBJECT
from zerolayer_operator.api.scaling import Provider
from zerolayer_operator.api.status import Condition, ConditionStatus, ConditionType, PoolStatus, ScalingStatus
from zerolayer_operator.decide.conditions import WARMING_UP, WORKERS_STARTING
from zerolayer_operator.decide.decision import Decision
from zerolayer_operator.decide.plan import Plan, PlannedRevision
from zerolayer_operator.decide.resources import DEFAULT_CPU_REQUEST, cpu_request_is_set
from zerolayer_operator.decide.update_events import of_update
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.observe.state import ChildKey, ObservedPool


def event(pool: ObservedPool, decision: Decision, now: datetime, reporter: str) -> dict[str, Any]:
    """The Event that tells a decision."""
    digest = hashlib.sha256(f"{pool.uid}/{decision.key}".encode()).hexdigest()[:16]
    moment = wire_time(now)
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {
            "name": f"{pool.name}.{digest}",
            "namespace": pool.namespace,
            "labels": names.owned_by_pool(pool.name),
        },
        "involvedObject": {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "namespace": pool.namespace,
            "name": pool.name,
            "uid": pool.uid,
        },
        "type": decision.type,
        "reason": decision.reason,
        "message": decision.message[:1024],
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
        "source": {"component": names.FIELD_MANAGER},
        "reportingComponent": names.FIELD_MANAGER,
        "reportingInstance": reporter,
    }


def planned(pool: ObservedPool, decided: Plan) -> Iterator[Decision]:
    """The decisions that a plan holds; told before it is carried out."""
    if not decided.acts:
        return
    for item in decided.revisions:
        yield from _revision(pool, decided, item)
    yield from _autoscaling(pool, decided)
    yield from _tuned(pool.status.scaling, decided.scaling_status)
    for key in decided.unwanted:
        yield _deletion(pool, decided, key)
    yield from of_update(pool, decided)
    before = pool.status.serving_revision
    if before is not None and before != decided.serving:
        yield Decision(
            f"switch/{pool.generation}/{before}/{decided.serving}",
            "Switched",
            f"revision {decided.serving} serves from now on; revision {before} finishes what it has begun",
        )
    for deployment in decided.remove:
        yield Decision(
            f"remove/{deployment.uid}",
            "RevisionRemoved",
            f"Deployment {deployment.name} is deleted: nothing needs revision {deployment.revision} any more",
        )


def reported(pool: ObservedPool, status: PoolStatus) -> Iterator[Decision]:
    """What a new status says that the last one did not; told before it is written."""
    before = {item.type: item for item in pool.status.conditions or ()}
    for condition in status.conditions or ():
        decision = _transition(pool, before.get(condition.type), condition)
        if decision is not None:
            yield decision
    if pool.status.phase is not None and (pool.status.phase == "Paused") != (status.phase == "Paused"):
        reason = "Paused" if status.phase == "Paused" else "Resumed"
        message = f"spec.paused is {str(status.phase == 'Paused').lower()}"
        yield Decision(f"paused/{pool.generation}", reason, message)


def _revision(pool: ObservedPool, decided: Plan, item: PlannedRevision) -> Iterator[Decision]:
    if item.live is None:
        if any(known.name == item.revision for known in pool.status.revisions or ()):
            # Told when it got into the status; the API server refuses to make it, or a hand deleted it.
            return
        tags = f"; without the digest of {item.frozen.unpinned}" if item.frozen.unpinned else ""
        yield Decision(
            f"revision/{pool.generation}/{item.revision}",
            "RevisionCreated",
            f"revision {item.revision} is made with worker image {item.frozen.image}{tags}",
        )
        if decided.spec is not None and cpu_request_is_set(decided.spec.worker):
            yield Decision(
                f"cpu-request/{item.revision}",
                "CPURequestSet",
                f"spec.worker.resources names no CPU; workers request {DEFAULT_CPU_REQUEST}, which a CPU "
                "autoscaler measures use against",
            )
    elif item.size is not None:
        yield Decision(
            f"size/{item.live.uid}/{item.live.generation}/{item.live.size}/{item.size}",
            "Sized",
            f"revision {item.revision} goes from {item.live.size} to {item.size} workers",
        )


def _autoscaling(pool: ObservedPool, decided: Plan) -> Iterator[Decision]:
    scaling = decided.spec.autoscaling if decided.spec is not None else None
    kind = AUTOSCALER if scaling is None or scaling.provider == Provider.HPA else SCALED_OBJECT
    exists = ChildKey(kind.kind, pool.name) in pool.children
    status = pool.status
    told = status.observed_generation == pool.generation and status.serving_revision is not None
    blocked = decided.scaling is not None and decided.scaling.blocked
    if scaling is not None and not blocked and not exists and not told:
        message = f"a {kind.kind} keeps {scaling.min_replicas} to {scaling.max_replicas} workers"
        yield Decision(f"autoscaling/{pool.generation}/on", "AutoscalingStarted", message)


def _tuned(before: ScalingStatus | None, now: ScalingStatus | None) -> Iterator[Decision]:
    if before is None or now is None:
        return
    changes: list[str] = []
    if before.window != now.window:
        changes.append(f"window {before.window} → {now.window}")
    if before.hold != now.hold:
        changes.append(f"hold {before.hold or 'none'} → {now.hold or 'none'}")
    if changes:
        key = f"tuned/{before.last_change}/{now.window}/{now.hold}"
        # While the load is known, the status tells of the last change of window.
        for_peaks = before.window == now.window and now.flatness is not None
        why = "the load's recent peaks are to find room" if for_peaks else now.why
        yield Decision(key, "ScalingTuned", f"{', '.join(changes)}; {why}")


def _deletion(pool: ObservedPool, decided: Plan, key: ChildKey) -> Decision:
    told = f"unwanted/{pool.children[key]['metadata']['uid']}"
    if key.name == pool.name and key.kind in {AUTOSCALER.kind, SCALED_OBJECT.kind}:
        if decided.scaling is None:
            message = f"the {key.kind} is deleted; the pool keeps a fixed size"
            return Decision(told, "AutoscalingStopped", message)
        message = f"the {key.kind} is deleted; the pool keeps its size until another autoscaler takes over"
        return Decision(told, "AutoscalerReplaced", message)
    return Decision(told, "ChildDeleted", f"{key.kind} {key.name} is deleted: nothing asks for it any more")


def _transition(pool: ObservedPool, before: Condition | None, now: Condition) -> Decision | None:
    changed = before is None or before.status != now.status
    if now.type == ConditionType.READY and changed:
        return _readiness(before, now)
    if now.type == ConditionType.SCALING_TUNED and changed and before is not None:
        return _tuning_transition(before, now)
    return _degradation(pool, before, now) if now.type == ConditionType.DEGRADED else None


def _readiness(before: Condition | None, now: Condition) -> Decision | None:
    holds = now.status == ConditionStatus.TRUE
    if not holds and before is None:
        return None
    key = f"ready/{now.status}/{_since(before)}"
    if holds or now.reason in {WARMING_UP, WORKERS_STARTING}:
        return Decision(key, "Ready" if holds else now.reason, now.message)
    return Decision(key, "NotReady", now.message, "Warning")


def _degradation(pool: ObservedPool, before: Condition | None, now: Condition) -> Decision | None:
    changed = before is None or before.status != now.status
    if now.status == ConditionStatus.TRUE and (
        changed or (before is not None and before.reason != now.reason)
    ):
        key = f"degraded/{pool.generation}/{now.reason}/{_since(before)}"
        return Decision(key, now.reason, now.message, "Warning")
    if now.status != ConditionStatus.TRUE and changed and before is not None:
        return Decision(f"recovered/{_since(before)}", "Recovered", "the problem is gone")
    return None


def _since(before: Condition | None) -> str:
    return before.last_transition_time if before is not None else "never"


def _tuning_transition(before: Condition, now: Condition) -> Decision:
    key = f"tuning/{now.status}/{before.last_transition_time}"
    if now.status == ConditionStatus.TRUE:
        return Decision(key, "LoadKnown", "the load is known; the window follows it")
    return Decision(key, now.reason, now.message, "Warning")
