"""What an update's step means for a pool: where requests go, how many workers each side has."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from zerolayer_operator.api.revision import FrozenAnchor
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.update_status import FailedUpdate, Step, UpdateStatus
from zerolayer_operator.decide.sizing import fixed_size, most_workers
from zerolayer_operator.decide.traffic import Pinned, Traffic
from zerolayer_operator.decide.update_facts import Assessment, Facts, Side, canary_size, full_size
from zerolayer_operator.observe.pods import ANCHOR_REFUSED
from zerolayer_operator.observe.state import ObservedDeployment, ObservedPool, Problem

SHARE_LIMIT: Final = 2
"""Without a gateway a canary gets no requests whose share would be more than so many times its weight."""

_TRYING: Final = frozenset({Step.SOAK, Step.AWAIT_PROMOTION, Step.PROMOTE})
_PINNING: Final = frozenset({Step.PREPARE, Step.PROMOTE, Step.ROLL_BACK})


@dataclass(frozen=True, slots=True)
class Movement:
    """What an update asks of a pool's children.

    Attributes:
        traffic: Where requests go.
        sizes: Sizes of revisions that the step decides on.
        floor: Fewest workers of the serving revision while the step lasts; ``None`` where it does not matter.
    """

    traffic: Traffic
    sizes: Mapping[str, int]
    floor: int | None = None


def facts_of(
    pool: ObservedPool,
    spec: PoolSpec,
    *,
    wanted: str,
    serving: str,
    now: datetime,
    assessment: Assessment,
) -> Facts:
    """What the pool's update depends on."""
    record = pool.status.update
    old, new = (record.from_revision, record.to_revision) if record is not None else (serving, wanted)
    if record is not None:
        record = record.model_copy(update={"standing_wishes": pool.wishes.standing})
    return Facts(
        now=now,
        wanted=wanted,
        serving=serving,
        settings=spec.update,
        blue=_side(pool.deployment(old)),
        green=_side(pool.deployment(new)),
        most=most_workers(spec),
        record=record,
        failed=pool.status.failed,
        assessment=assessment,
        refusal=_refusal(pool, pool.deployment(new)),
        promote=pool.wishes.promote,
        roll_back=pool.wishes.roll_back,
    )


def movement(
    pool: ObservedPool, spec: PoolSpec, serving: str, record: UpdateStatus | None, failed: FailedUpdate | None
) -> Movement:
    """What the children are to be like at an update's step, or without one."""
    if record is None:
        kept = pool.deployment(failed.revision) if failed is not None else None
        sizes = {kept.revision: min(kept.size, 1)} if kept is not None and kept.revision != serving else {}
        return Movement(Traffic(serving), sizes)
    return Movement(
        traffic=_traffic(pool, spec, serving, record),
        sizes=_sizes(pool, spec, serving, record),
        floor=_floor(pool, serving, record),
    )


def told(record: UpdateStatus, traffic: Traffic, share: int | None) -> UpdateStatus:
    """The record with the share of the requests that the canary gets.

    The share that it has proven itself with stays while it grows to take over: it is grown by that, and would
    be by its own growth.
    """
    weight = traffic.weight if not traffic.both else share or 0
    if record.step == Step.PROMOTE:
        weight = record.weight
    shown = f"{weight}%" if record.step in _TRYING or record.step == Step.PREPARE else None
    return record.model_copy(update={"weight": weight, "share": share, "canary": shown})


def by_gateway(pool: ObservedPool, spec: PoolSpec) -> bool:
    """Whether a gateway weighs the pool's requests."""
    return spec.routing is not None and pool.routable is True


def real_share(pool: ObservedPool, spec: PoolSpec, record: UpdateStatus) -> int | None:
    """The canary's share of all ready workers, in percent; ``None`` where a gateway makes that irrelevant."""
    if record.step not in _TRYING or by_gateway(pool, spec):
        return None
    old, new = _side(pool.deployment(record.from_revision)), _side(pool.deployment(record.to_revision))
    ready = old.ready + new.ready
    return round(100 * new.ready / ready) if ready else 0


def anchor_of(deployment: ObservedDeployment | None) -> FrozenAnchor | None:
    """A revision's anchor."""
    return deployment.frozen.anchor if deployment is not None else None


def _side(deployment: ObservedDeployment | None) -> Side:
    if deployment is None:
        return Side(current=False)
    return Side(deployment.size, deployment.ready, deployment.current)


def _refusal(pool: ObservedPool, green: ObservedDeployment | None) -> Problem | None:
    """Why the new revision's workers will never start: they refuse their anchor, or had their time."""
    if green is None or green.ready:
        return None
    problems = [
        pod.problem
        for pod in pool.pods
        if pod.revision == green.revision and not pod.deleting and pod.problem is not None
    ]
    refused = next((item for item in problems if ANCHOR_REFUSED.match(item.reason)), None)
    waits = any(item.reason == "Unschedulable" for item in problems)
    if refused is not None or waits or not green.deadline_exceeded:
        return refused
    late = Problem("WarmupTimedOut", f"no worker of revision {green.revision} became warm in time")
    return problems[0] if problems else late


def _traffic(pool: ObservedPool, spec: PoolSpec, serving: str, record: UpdateStatus) -> Traffic:
    old, new = pool.deployment(record.from_revision), pool.deployment(record.to_revision)
    canary = record.to_revision
    if serving == canary:
        return Traffic(serving, pinned=tuple(_pinned(old, new)))
    if record.step not in _TRYING:
        return Traffic(serving, canary if record.step == Step.PREPARE else None)
    answers = new is not None and new.ready > 0
    if by_gateway(pool, spec):
        weight = spec.update.canary_weight if answers else 0
        return Traffic(serving, canary, weight, tuple(_pinned(old, new)))
    share = real_share(pool, spec, record) or 0
    if not answers or share > SHARE_LIMIT * spec.update.canary_weight:
        return Traffic(serving, canary)
    return Traffic(serving, canary, spec.update.canary_weight, both=True)


def _pinned(old: ObservedDeployment | None, new: ObservedDeployment | None) -> tuple[Pinned, ...]:
    """Revisions that requests may name: those that answer. By anchor only where that tells them apart."""
    both = [item for item in (new, old) if item is not None and item.ready]
    versions = [item.frozen.anchor.version if item.frozen.anchor else None for item in both]
    apart = len(set(versions)) == len(versions)
    return tuple(
        Pinned(item.revision, version if apart else None)
        for item, version in zip(both, versions, strict=True)
    )


def _sizes(pool: ObservedPool, spec: PoolSpec, serving: str, record: UpdateStatus) -> dict[str, int]:
    """Sizes that the step decides on; the old revision's is its autoscaler's, or fixed, while it serves."""
    old, new = _side(pool.deployment(record.from_revision)), _side(pool.deployment(record.to_revision))
    if record.step in {Step.PREPARE, Step.SOAK, Step.AWAIT_PROMOTION}:
        return {record.to_revision: max(new.size, canary_size(spec.update.canary_weight, old.size))}
    if record.step == Step.PROMOTE:
        return {record.to_revision: max(new.size, full_size(record, old.size, most_workers(spec)))}
    if record.step == Step.ROLL_BACK and serving == record.to_revision:
        return {record.from_revision: max(old.size, _raise_to(pool)), record.to_revision: new.size}
    if record.step == Step.ROLL_BACK:
        return {record.to_revision: new.size}
    size = new.size if spec.autoscaling is not None else fixed_size(spec)
    return {record.from_revision: old.size, record.to_revision: size}


def _floor(pool: ObservedPool, serving: str, record: UpdateStatus) -> int | None:
    """The serving revision's present size, where it is not to shrink; it may always grow."""
    if record.step not in _PINNING:
        return None
    raised = _raise_to(pool) if serving == record.from_revision else 0
    return max(_side(pool.deployment(serving)).size, raised, 1)


def _raise_to(pool: ObservedPool) -> int:
    """The size that a roll-back raises the old revision to, once that is written down.

    It goes by the size that the old revision had. Were it raised before, an operator that is killed in
    between would take the new size for that one, and raise it again.
    """
    record = pool.status.update
    return record.raise_to or 0 if record is not None else 0
