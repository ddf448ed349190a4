"""What keeps a pool from what its spec asks, in the order in which a person should look at it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from zerolayer_operator.decide.autoscaling import autoscaling_problems
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.decide.routing import routing_problems
from zerolayer_operator.observe.pods import NODE_LACKS_IMAGE_VOLUMES
from zerolayer_operator.observe.state import ObservedDeployment, ObservedPod, ObservedPool, Problem

START_PATIENCE: Final = timedelta(minutes=3)


def first_problem(
    pool: ObservedPool, decided: Plan, refused: tuple[Problem, ...], now: datetime
) -> Problem | None:
    """The problem to report.

    What the spec names in vain comes first, then what can't be made, then what pods say, then what keeps
    gateways from leading requests to it, then what keeps the autoscaler from working: a pool that serves at a
    size which stays is better off than one that doesn't.
    """
    return next(_problems(pool, decided, refused, now), None)


def _problems(
    pool: ObservedPool, decided: Plan, refused: tuple[Problem, ...], now: datetime
) -> Iterator[Problem]:
    yield from pool.missing
    yield from decided.problems
    yield from refused
    for revision in dict.fromkeys((decided.wanted, decided.serving)):
        deployment = pool.deployment(revision)
        if deployment is not None:
            yield from _of_deployment(pool, deployment, decided, now)
    yield from routing_problems(pool, decided.spec, now)
    yield from autoscaling_problems(pool, decided.scaling, now)


def _of_deployment(
    pool: ObservedPool, deployment: ObservedDeployment, decided: Plan, now: datetime
) -> Iterator[Problem]:
    if deployment.has_ready(deployment.size):
        return
    if deployment.failure is not None:
        message = f"pods of revision {deployment.revision} can't be made: {deployment.failure}"
        advice = "raise the quota or heed what admission complains about"
        yield Problem("PodsRefused", f"{message}; {advice}", quote=deployment.failure)
    pods = [pod for pod in pool.pods if pod.revision == deployment.revision and not pod.deleting]
    makes_room = any(pod.gone_by is not None and now <= pod.gone_by for pod in pool.pods)
    for problem in (pod.problem for pod in pods if pod.problem is not None):
        if problem.reason != "Unschedulable" or not makes_room:
            yield _beside_the_old(problem, deployment, decided)
    if deployment.deadline_exceeded:
        yield Problem(
            "WarmupTimedOut",
            f"no worker of revision {deployment.revision} became warm in time; look at `kubectl logs` of its "
            "pods, or raise spec.warmup.timeoutSeconds",
        )
    for pod in pods:
        if _stuck(pod, now):
            yield _not_starting(pool, pod)


def _beside_the_old(problem: Problem, deployment: ObservedDeployment, decided: Plan) -> Problem:
    if problem.reason != "Unschedulable" or not decided.updating or deployment.revision != decided.wanted:
        return problem
    message = (
        f"revision {decided.wanted} finds no room beside revision {decided.serving}, which keeps serving"
    )
    return replace(problem, reason="NoRoomForUpdate", message=f"{message}: {problem.message}")


def _stuck(pod: ObservedPod, now: datetime) -> bool:
    waits = pod.scheduled_at is not None and now - pod.scheduled_at > START_PATIENCE
    return waits and not pod.started


def _not_starting(pool: ObservedPool, pod: ObservedPod) -> Problem:
    minutes = int(START_PATIENCE.total_seconds() // 60)
    mounts_image = pool.spec is not None and pool.spec.model.source.image is not None
    mounting = f"; {NODE_LACKS_IMAGE_VOLUMES}" if mounts_image else ""
    return Problem(
        "PodNotStarting",
        f"pod {pod.name} has waited more than {minutes} minutes on node {pod.node} for volumes or images; "
        f"`kubectl describe pod {pod.name}` says which: a hostPath that the node lacks, a key that a Secret "
        f"lacks, a claim that can't be attached{mounting}",
    )
