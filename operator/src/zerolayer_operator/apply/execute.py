"""Carries out a plan: the only writes to children happen here."""

import contextlib
import logging
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import CHILD_KINDS, CONFIG_MAP, DEPLOYMENT, JOB, OPTIONAL_KINDS
from zerolayer_operator.apply.deletion_cost import write_costs
from zerolayer_operator.apply.diff import Object, differs, stamped
from zerolayer_operator.apply.image_volumes import advice_for, lost_by
from zerolayer_operator.build.children import key_of
from zerolayer_operator.decide.plan import Plan, PlannedRevision
from zerolayer_operator.kube import ApiServerError, Kube
from zerolayer_operator.observe.state import ChildKey, ObservedDeployment, ObservedPool, Problem

log = logging.getLogger(__name__)

_WEBHOOK_REMEDY: Final = (
    "have the webhook answer again, or remove its configuration: `kubectl get mutatingwebhookconfigurations,"
    "validatingwebhookconfigurations` lists them"
)
_KINDS: Final = {kind.kind: kind for kind in (*CHILD_KINDS, CONFIG_MAP, JOB, *OPTIONAL_KINDS)}


@dataclass
class Outcome:
    """What became of a plan.

    Attributes:
        problems: What the API server refused, or what belongs to somebody else.
        waiting: What is in the way of children, but about to be collected as garbage.
        writes: How many writes there were.
    """

    problems: list[Problem] = field(default_factory=list[Problem])
    waiting: list[ChildKey] = field(default_factory=list[ChildKey])
    writes: int = 0


async def carry_out(kube: Kube, pool: ObservedPool, decided: Plan, objects: Iterable[Object]) -> Outcome:
    """Apply children that differ, set sizes, delete what the plan no longer holds.

    Args:
        kube: The API server.
        pool: The pool as observed.
        decided: The plan.
        objects: The plan's children, in the order in which they are applied.

    Raises:
        ApiServerError: The API server can't be reached or fails; what it refuses becomes a problem instead.
    """
    outcome = Outcome()
    if not decided.acts:
        return outcome
    # Before anything lets the pool shrink: who goes is settled within milliseconds then.
    await write_costs(kube, pool, decided.costs)
    # Before sizes are set: an autoscaler would undo them.
    for key in decided.unwanted:
        await _delete(kube, pool, key, pool.children[key]["metadata"]["uid"], outcome)
    for body in objects:
        applied = await _apply(kube, pool, body, outcome)
        if not applied and _is_missing_target(pool, decided, body):
            # Service and autoscaler would point at nothing, and what it was to replace would be gone.
            return outcome
        if applied and body["kind"] == DEPLOYMENT.kind:
            await _grow(kube, pool, decided, body["metadata"]["name"], outcome)
    # Now that requests are led elsewhere: workers that go may have had them.
    for item in decided.revisions:
        if item.shrinks:
            await _scale(kube, pool, item, outcome)
    for deployment in decided.remove:
        # First: were only the Deployment gone, nobody would know of the copy.
        await _delete_copy(kube, pool, deployment, outcome)
        await _delete(kube, pool, ChildKey(DEPLOYMENT.kind, deployment.name), deployment.uid, outcome)
    return outcome


@contextlib.contextmanager
def _noting_refusal(outcome: Outcome, what: str, advice: str = "") -> Generator[None]:
    """What the API server refuses becomes a problem: asking again would get the same answer.

    So does what a webhook that is away keeps from being: it may be away for long.
    """
    try:
        yield
    except ApiServerError as error:
        if error.by_webhook:
            message = f"{what} can't be applied: {error.message}; {_WEBHOOK_REMEDY}"
            outcome.problems.append(Problem("WebhookFails", message, quote=error.message))
        elif error.refused:
            message = f"{what} is refused by the API server: {error.message}{advice}"
            outcome.problems.append(Problem("ChildRefused", message, quote=error.message))
        else:
            raise


def _is_missing_target(pool: ObservedPool, decided: Plan, body: Object) -> bool:
    """Whether a child is the serving revision's Deployment, and not there."""
    target = names.deployment_name(pool.name, decided.serving or "")
    return key_of(body) == ChildKey(DEPLOYMENT.kind, target) and key_of(body) not in pool.children


async def _delete(kube: Kube, pool: ObservedPool, key: ChildKey, uid: str, outcome: Outcome) -> None:
    with _noting_refusal(outcome, f"deletion of {key.kind} {key.name}"):
        await kube.delete(_KINDS[key.kind], pool.namespace, key.name, uid)
        outcome.writes += 1


async def _delete_copy(
    kube: Kube, pool: ObservedPool, deployment: ObservedDeployment, outcome: Outcome
) -> None:
    name = deployment.frozen.anchor_copy
    copy = pool.bundles.get(name) if name is not None else None
    if name is not None and copy is not None and copy.uid is not None:
        await _delete(kube, pool, ChildKey(CONFIG_MAP.kind, name), copy.uid, outcome)


async def _apply(kube: Kube, pool: ObservedPool, body: Object, outcome: Outcome) -> bool:
    """Apply one child where it differs; false where that is refused, or has to wait."""
    key = key_of(body)
    if key in pool.leftover:
        outcome.waiting.append(key)
        return False
    if key in pool.foreign:
        outcome.problems.append(_name_taken(key))
        return False
    live, configuration = pool.children.get(key), stamped(body)
    if not differs(live, configuration):
        return True
    with _noting_refusal(outcome, f"{key.kind} {key.name}", advice_for(body)):
        lost = await lost_by(kube, configuration) if live is None else None
        if lost is not None:
            outcome.problems.append(lost)
            return False
        await kube.apply(_KINDS[key.kind], configuration)
        outcome.writes += 1
        log.info("applied %s %s", key.kind, key.name, extra={"namespace": pool.namespace, "pool": pool.name})
        return True
    return False


async def _grow(kube: Kube, pool: ObservedPool, decided: Plan, name: str, outcome: Outcome) -> None:
    for item in decided.revisions:
        if name == names.deployment_name(pool.name, item.revision) and not item.shrinks:
            await _scale(kube, pool, item, outcome)


async def _scale(kube: Kube, pool: ObservedPool, item: PlannedRevision, outcome: Outcome) -> None:
    name = names.deployment_name(pool.name, item.revision)
    if item.size is not None:
        with _noting_refusal(outcome, f"size {item.size} of Deployment {name}"):
            await kube.scale(DEPLOYMENT, pool.namespace, name, item.size)
            outcome.writes += 1


def _name_taken(key: ChildKey) -> Problem:
    return Problem(
        "NameTaken",
        f"{key.kind} {key.name} exists and doesn't belong to the pool; delete or rename it, or give the pool "
        "another name",
    )
