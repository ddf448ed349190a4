"""A pool that goes on failing in one way is told so once, however its pods put it from attempt to attempt."""

import itertools
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.observed import DEFAULTS, NOW, pool, spec
from zerolayer_dev.testing.refusing_cluster import Cluster
from zerolayer_operator.api import names
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.apply.execute import carry_out
from zerolayer_operator.build.children import children
from zerolayer_operator.decide import events
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.kube import ApiServerError, Kube
from zerolayer_operator.observe.parse import parse_deployment, parse_pod
from zerolayer_operator.observe.state import ObservedPool, Problem

Object = dict[str, Any]

ONE = spec()
REVISION = revision_hash(ONE)
PULL = 'failed to resolve reference "r.example/w:1": '
NO_DNS = "dial tcp: lookup r.example on 10.0.0.10:53: read udp 10.1.0.4:{}->10.0.0.10:53: i/o timeout"
LOG = '{{"timestamp": "2026-01-02T03:{}Z", "message": "CUDA error 0x7f{} after {} s"}}'


def a_pod(status: Object) -> Object:
    labels = names.revision_selector("pool", REVISION)
    return {"metadata": {"name": "pool-x-y", "labels": labels}, "spec": {}, "status": status}


def container(state: Object, last: Object | None = None, field: str = "containerStatuses") -> Object:
    status = {"name": "w", "image": "r.example/w:1", "ready": False, "state": state, "lastState": last or {}}
    return a_pod({field: [status]})


def waits(reason: str, message: str = "", last: Object | None = None) -> Object:
    return container({"waiting": {"reason": reason, "message": message}}, last)


def ended(message: str, code: int = 1, reason: str = "Error") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


def crash_loop(
    *said: str, field: str = "containerStatuses", code: int = 1, reason: str = "Error"
) -> list[Object]:
    """Every state that a container goes through which ends by itself, once for each of its last words."""
    found: list[Object] = []
    for number, words in enumerate(said):
        last = ended(words, code, reason)
        waiting = {"reason": "CrashLoopBackOff", "message": f"back-off {10 * 2**number}s restarting failed w"}
        found += [
            container(last, field=field),
            container({"waiting": waiting}, last, field),
            container({"running": {"startedAt": "2026-01-02T03:04:05Z"}}, last, field),
        ]
    return found


def unscheduled(message: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return a_pod({"conditions": [condition]})


KINDS = {
    "image is not there": [
        waits("ErrImagePull", f"{PULL}not found"),
        waits("ImagePullBackOff", f'Back-off pulling image "r.example/w:1": ErrImagePull: {PULL}not found'),
    ],
    "image is not there, before Kubernetes 1.32": [
        waits("ErrImagePull", f"{PULL}not found"),
        waits("ImagePullBackOff", 'Back-off pulling image "r.example/w:1"'),
    ],
    "registry can't be found": [
        waits("ErrImagePull", PULL + NO_DNS.format(40001)),
        waits("ImagePullBackOff", f'Back-off pulling image "w": ErrImagePull: {PULL}{NO_DNS.format(40001)}'),
        waits("ErrImagePull", PULL + NO_DNS.format(9)),
        waits("ImagePullBackOff", f'Back-off pulling image "w": ErrImagePull: {PULL}{NO_DNS.format(9)}'),
    ],
    "registry is away, at length": [
        waits("RegistryUnavailable", "tried again; " * 60 + "unavailable"),
        waits(
            "ImagePullBackOff",
            'Back-off pulling image "w": RegistryUnavailable: ' + "tried again; " * 60 + "unavailable",
        ),
    ],
    "worker ends with a message": crash_loop("the weights are broken", "the weights are broken"),
    "worker ends with its log": crash_loop(LOG.format("04:05.1", "ab01", 1.5), LOG.format("09:15", "c2", 22)),
    "worker ends with a long log": crash_loop(
        *(" ".join(LOG.format(at, "3f", 7) for at in range(first, first + 40)) for first in (1, 95, 1000))
    ),
    "worker ends with no word": crash_loop("", ""),
    "worker ends as if all were well": crash_loop("", "", code=0, reason="Completed"),
    "worker takes too much memory": crash_loop("", "", code=137, reason="OOMKilled"),
    "worker can't be started": [
        waits("RunContainerError", 'exec: "zerolayer-worker": not found in $PATH'),
        *crash_loop('exec: "zerolayer-worker": not found in $PATH', code=128, reason="StartError"),
    ],
    "model can't be fetched": crash_loop(
        "404 for https://hub.example/a (request 7f12)",
        "404 for https://hub.example/a (request 80)",
        field="initContainerStatuses",
    ),
    "no node fits, in a cluster that lives": [
        unscheduled(
            f"0/{all_} nodes are available: {few} Insufficient cpu, {many} node(s) had {taint}. {more}"
        )
        for all_, few, many, taint, more in (
            (
                3,
                1,
                2,
                "untolerated taint(s)",
                "preemption: 0/3 nodes are available: 3 Preemption is not helpful",
            ),
            (12, 11, 1, "untolerated taint(s)", "no new claims to deallocate, preemption: not eligible"),
        )
    ],
}


def observed(body: Object | None, status: PoolStatus, failure: str | None = None) -> Any:
    """A pool with one Deployment of no ready worker, and at most one pod."""
    conditions = [{"type": "ReplicaFailure", "status": "True", "message": failure}] if failure else []
    live: Object = {
        "metadata": {"name": names.deployment_name("pool", REVISION), "uid": "d", "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "w", "image": "w:1"}]}}},
        "status": {"observedGeneration": 1, "replicas": 1, "conditions": conditions},
    }
    pods = (parse_pod(body),) if body is not None else ()
    return pool(ONE, status=status, deployments=(parse_deployment(live),), pods=pods)


def written(looks: Sequence[Any], rounds: int = 3) -> list[PoolStatus]:
    """Each status that is written over some rounds of looking; `looks` make a pool from the last status."""
    status, seen = PoolStatus(), []
    for look in itertools.chain.from_iterable(itertools.repeat(looks, rounds)):
        found = look(status)
        now = report(found, plan(found, DEFAULTS, NOW), (), NOW)
        if now != status:
            seen.append(now)
        told = list(events.reported(found, now))
        assert not told or len(seen) == 1, told
        status = now
    return seen


@pytest.mark.parametrize("bodies", KINDS.values(), ids=KINDS)
def test_steady_failure_is_written_once(bodies: list[Object]) -> None:
    looks = [lambda status, body=body: observed(body, status) for body in bodies]

    (status,) = written(looks)
    assert status.phase == "Degraded"


def test_pods_that_can_not_be_made_are_told_once_though_each_has_a_name_of_its_own() -> None:
    refused = 'pods "pool-abc-{}" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2'
    looks = [
        lambda status, name=name: observed(None, status, failure=refused.format(name))
        for name in ("xk2lq", "zzvbn")
    ]

    (status,) = written(looks)
    assert "forbidden: exceeded quota: q" in str(status.conditions)


REFUSALS = {
    "an id of its own": [
        'admission webhook "x" denied the request: request 6f1d0f7e-5a55-4f0c-9c53-f7c8e2a1b0d4',
        'admission webhook "x" denied the request: request 00ab77de-1111-4b0b-8a3e-0123456789ab',
    ],
    "a port of its own": [f"dial tcp 10.0.0.1:{port}: connection refused" for port in (4711, 8)],
    "an order of its own": [
        "denied by policies: [limits, labels, images]",
        "denied by policies: [images, limits, labels]",
    ],
}


@pytest.mark.parametrize("reason", ["ChildRefused", "WebhookFails"])
@pytest.mark.parametrize("said", REFUSALS.values(), ids=REFUSALS)
async def test_refusal_is_written_once_however_it_is_worded(said: list[str], reason: str) -> None:
    status_code = 403 if reason == "ChildRefused" else 500
    prefix = "" if reason == "ChildRefused" else 'failed calling webhook "x": '
    status, seen = PoolStatus(), []
    for words in said * 2:
        found = pool(ONE, status=status)
        refused = await refusals(found, ApiServerError(status_code, prefix + words))
        assert [problem.reason for problem in refused] == [reason]
        now = report(found, plan(found, DEFAULTS, NOW), refused, NOW)
        seen += [now] if now != status else []
        status = now

    assert len(seen) == 1


async def refusals(found: ObservedPool, error: ApiServerError) -> tuple[Problem, ...]:
    """What becomes of a Deployment that an API server has this to say of."""
    decided = plan(found, DEFAULTS, NOW)
    kube = cast("Kube", Cluster("apply Deployment", status=error.status, message=error.message))
    outcome = await carry_out(kube, found, decided, children(found, decided, DEFAULTS))
    return tuple(outcome.problems)


@given(st.permutations(crash_loop(LOG.format("04:05.1", "ab01", 1.5), LOG.format("09:15", "c2", 22))))
def test_it_does_not_matter_in_which_state_a_failing_worker_is_found(bodies: list[Object]) -> None:
    assert len(written([lambda status, body=body: observed(body, status) for body in bodies])) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (waits("ErrImagePull", f"{PULL}not found"), waits("ErrImagePull", f"{PULL}unauthorized")),
        (waits("ImagePullBackOff", "Back-off pulling image"), waits("ErrImagePull", f"{PULL}not found")),
        (crash_loop("weights are broken")[0], crash_loop("config is broken")[0]),
        (crash_loop("", code=1)[0], crash_loop("", code=2)[0]),
    ],
    ids=["another cause", "a cause at last", "other words", "another exit code"],
)
def test_another_failure_is_written(before: Object, after: Object) -> None:
    looks = [lambda status, body=body: observed(body, status) for body in (before, after)]
    status, seen = PoolStatus(), []
    for look in looks:
        found = look(status)
        status = report(found, plan(found, DEFAULTS, NOW), (), NOW)
        seen.append(status)

    assert seen[0].conditions != seen[1].conditions


def test_figures_are_taken_anew_with_another_spec() -> None:
    first = observed(crash_loop("context 9 exceeds 8")[0], PoolStatus())
    status = report(first, plan(first, DEFAULTS, NOW), (), NOW)
    later = pool(ONE, generation=2, status=status, deployments=first.deployments, pods=(
        parse_pod(crash_loop("context 10 exceeds 8")[0]),
    ))  # fmt: skip

    assert "context 10" in str(report(later, plan(later, DEFAULTS, NOW), (), NOW).conditions)
