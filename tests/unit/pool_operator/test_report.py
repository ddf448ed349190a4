"""The status: phase, conditions and figures."""

from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pod, pool, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.status import PoolStatus, RevisionStatus, WarmupStatus
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Problem

ONE, TWO = spec(), spec(replicas=2)
OTHER = spec(drainSeconds=60)


def told(observed: ObservedPool, *refused: Problem, now=NOW) -> PoolStatus:
    return report(observed, plan(observed, DEFAULTS, NOW), refused, now)


def condition(status: PoolStatus, kind: str) -> Any:
    return next(item for item in status.conditions or () if item.type == kind)


def serving(of, **fields: Any) -> dict[str, Any]:
    """What a pool that serves a revision remembers."""
    revision = revision_hash(of)
    status = PoolStatus(
        serving_revision=revision, revisions=(RevisionStatus(name=revision, image="worker:1", warm=True),)
    )
    return {"status": status, "service_revision": revision, **fields}


SCHEDULED = {"scheduled_at": NOW}
BROKEN = Problem("ImagePullFailed", "it can't be pulled; check it")


@pytest.mark.parametrize(
    ("observed", "phase", "ready"),
    [
        (pool(ONE), "Pending", "0/1"),
        (pool(ONE, deployments=(deployment(ONE),)), "Pending", "0/1"),
        (pool(ONE, deployments=(deployment(ONE),), pods=(pod(ONE, **SCHEDULED),)), "WarmingUp", "0/1"),
        (pool(TWO, deployments=(deployment(TWO, size=2, ready=1),)), "Pending", "1/2"),
        (pool(TWO, deployments=(deployment(TWO, size=2, ready=2),)), "Ready", "2/2"),
        (pool(ONE, deployments=(deployment(ONE, ready=1, current=False),)), "Ready", "1/1"),
        (
            pool(OTHER, **serving(ONE, deployments=(deployment(ONE, ready=1), deployment(OTHER)))),
            "Updating",
            "1/1",
        ),
        (
            pool(ONE, deployments=(deployment(ONE),), pods=(pod(ONE, problem=BROKEN),)),
            "Degraded",
            "0/1",
        ),
        (
            pool(spec(paused=True), **serving(ONE, deployments=(deployment(ONE, ready=1),))),
            "Paused",
            "1/1",
        ),
        (pool(None, invalid="spec.x: no"), "Degraded", "0/0"),
        (pool(spec(replicas=0), deployments=(deployment(ONE, size=0),)), "Ready", "0/0"),
        (
            pool(
                spec(autoscaling={"minReplicas": 2, "maxReplicas": 5}),
                autoscaler_revision=revision_hash(ONE),
                deployments=(deployment(ONE, size=4, ready=2),),
            ),
            "Ready",
            "2/4",
        ),
    ],
    ids=[
        "new",
        "not scheduled",
        "warming up",
        "half ready",
        "ready",
        "ready, a new size not acted on yet",
        "updating",
        "broken",
        "paused",
        "invalid",
        "scaled to zero",
        "autoscaled above its minimum",
    ],
)
def test_phase(observed: ObservedPool, phase: str, ready: str) -> None:
    status = told(observed)

    assert (status.phase, status.ready) == (phase, ready)


def test_ready_pool() -> None:
    status = told(pool(ONE, generation=7, **serving(ONE, deployments=(deployment(ONE, ready=1),))))

    verdicts = {item.type: (item.status, item.reason) for item in status.conditions or ()}
    assert verdicts == {
        "Ready": ("True", "WorkersReady"),
        "Progressing": ("False", "Settled"),
        "WarmedUp": ("True", "WorkersWarm"),
        "Degraded": ("False", "AsExpected"),
    }
    assert {item.observed_generation for item in status.conditions or ()} == {7}
    assert status.observed_generation == 7
    assert status.selector == f"zerolayer.dev/pool=pool,zerolayer.dev/revision={revision_hash(ONE)}"
    assert status.revisions == (RevisionStatus(name=revision_hash(ONE), image="worker:1", warm=True),)


def test_update_without_room_names_both_revisions() -> None:
    full = Problem("Unschedulable", "no node can run pod p: Insufficient cpu; add a node")
    both = (deployment(ONE, ready=1), deployment(OTHER))
    status = told(pool(OTHER, **serving(ONE, deployments=both), pods=(pod(OTHER, problem=full),)))

    degraded = condition(status, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", "NoRoomForUpdate")
    assert revision_hash(ONE) in degraded.message
    assert revision_hash(OTHER) in degraded.message
    assert condition(status, "Ready").status == "True"
    assert status.serving_revision == revision_hash(ONE)


def test_pool_that_serves_on_with_a_spec_that_is_not_understood() -> None:
    status = told(pool(None, invalid="spec.x: no", **serving(ONE, deployments=(deployment(ONE, ready=1),))))

    ready = condition(status, "Ready")
    assert (ready.status, ready.reason) == ("True", "WorkersReady")
    assert (condition(status, "Degraded").reason, status.ready) == ("InvalidSpec", "1/1")


def test_pool_that_grows_says_how_many_can_answer() -> None:
    found = pool(
        spec(autoscaling={"minReplicas": 1, "maxReplicas": 5}),
        autoscaler_revision=revision_hash(ONE),
        deployments=(deployment(ONE, size=4, ready=2),),
    )
    ready = condition(told(found), "Ready")
    assert (ready.status, ready.reason) == ("True", "WorkersReady")
    assert ready.message == "2 of 4 workers can answer, and a pool is ready with its fewest, 1"


def test_quoted_words_of_any_length_fit() -> None:
    quoted = "must be no more than 63 bytes; " * 5000
    degraded = condition(told(pool(ONE), Problem("ChildRefused", quoted)), "Degraded")

    assert degraded.message.startswith("must be")
    assert len(degraded.message) <= 4096


class TestProblems:
    """Which problem is reported, where there are several."""

    DEADLINE = deployment(ONE, deadline_exceeded=True)
    MISSING = Problem("SecretNotFound", "no secret")

    @pytest.mark.parametrize(
        ("observed", "refused", "reason"),
        [
            (pool(None, invalid="x"), (), "InvalidSpec"),
            (pool(ONE, unresolved="x", missing=(MISSING,)), (), "SecretNotFound"),
            (pool(ONE, unresolved="x"), (Problem("ChildRefused", "x"),), "ModelUnresolved"),
            (pool(ONE), (Problem("ChildRefused", "x"),), "ChildRefused"),
            (
                pool(ONE, missing=(MISSING,), deployments=(DEADLINE,), pods=(pod(ONE, problem=BROKEN),)),
                (),
                "SecretNotFound",
            ),
            (pool(ONE, deployments=(deployment(ONE, failure="quota"),)), (), "PodsRefused"),
            (pool(ONE, deployments=(DEADLINE,), pods=(pod(ONE, problem=BROKEN),)), (), "ImagePullFailed"),
            (pool(ONE, deployments=(DEADLINE,)), (), "WarmupTimedOut"),
            (
                pool(
                    ONE,
                    deployments=(deployment(ONE),),
                    pods=(pod(ONE, scheduled_at=NOW - timedelta(minutes=4), node="n"),),
                ),
                (),
                "PodNotStarting",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_first_one_counts(self, observed, refused, reason) -> None:
        degraded = condition(told(observed, *refused), "Degraded")

        assert (degraded.status, degraded.reason) == ("True", reason)

    @pytest.mark.parametrize(
        "observed",
        [
            pool(ONE, deployments=(deployment(ONE, ready=1),), pods=(pod(ONE, problem=BROKEN),)),
            pool(ONE, deployments=(deployment(ONE),), pods=(pod(ONE, problem=BROKEN, gone_by=NOW),)),
            pool(ONE, deployments=(deployment(ONE),), pods=(pod("another", problem=BROKEN),)),
            pool(
                ONE,
                deployments=(deployment(ONE),),
                pods=(pod(ONE, scheduled_at=NOW - timedelta(hours=1), started=True),),
            ),
            pool(ONE, deployments=(deployment(ONE),), pods=(pod(ONE, scheduled_at=NOW),)),
        ],
        ids=["enough are ready", "on its way out", "of no revision that counts", "warming up", "just begun"],
    )
    def test_what_does_not_matter_is_not_reported(self, observed) -> None:
        assert condition(told(observed), "Degraded").status == "False"


@pytest.mark.parametrize(
    ("source", "named"), [({"image": {"reference": "m:1"}}, True), ({"builtin": {"name": "tiny"}}, False)]
)
def test_pod_that_waits_for_an_image_volume_names_the_chart_s_switch(source, named) -> None:
    of = spec(model={"name": "m", "source": source})
    waits = pod(of, scheduled_at=NOW - timedelta(minutes=4), node="n")
    degraded = condition(told(pool(of, deployments=(deployment(of),), pods=(waits,))), "Degraded")

    assert degraded.reason == "PodNotStarting"
    assert ("worker.imageVolumes=false" in degraded.message) is named


def test_pool_that_waits_for_the_garbage_of_an_earlier_one_makes_progress() -> None:
    observed = pool(ONE)
    left = (ChildKey("Service", "pool"), ChildKey("Deployment", "pool-1"))
    status = report(observed, plan(observed, DEFAULTS, NOW), (), NOW, left)

    progressing = condition(status, "Progressing")
    assert (progressing.status, progressing.reason) == ("True", "WaitingForGarbageCollector")
    assert progressing.message.startswith("Service pool, Deployment pool-1 of an earlier pool of this name")
    assert condition(status, "Degraded").status == "False"
    assert status.phase == "Pending"


def test_waiting_for_garbage_is_told_beside_a_problem() -> None:
    """The problem has the other conditions: whoever asks why nothing comes of the pool finds both."""
    observed = pool(ONE, deployments=(deployment(ONE),), missing=(TestProblems.MISSING,))
    status = report(observed, plan(observed, DEFAULTS, NOW), (), NOW, (ChildKey("Service", "pool"),))

    progressing, degraded = condition(status, "Progressing"), condition(status, "Degraded")
    assert (progressing.status, progressing.reason) == ("True", "WaitingForGarbageCollector")
    assert (degraded.status, degraded.reason) == ("True", TestProblems.MISSING.reason)


class TestTransitionTimes:
    def test_time_stays_while_the_status_does(self) -> None:
        observed = pool(ONE, deployments=(deployment(ONE),))
        first = told(observed)
        later = told(
            pool(ONE, deployments=(deployment(ONE),), status=first, missing=(TestProblems.MISSING,)),
            now=NOW + timedelta(minutes=1),
        )

        assert condition(first, "Ready").last_transition_time == "2026-01-02T03:04:05Z"
        assert condition(later, "Ready").last_transition_time == "2026-01-02T03:04:05Z"
        assert condition(later, "Ready").reason == "SecretNotFound"
        assert condition(later, "Degraded").last_transition_time == "2026-01-02T03:05:05Z"

    def test_status_of_a_steady_pool_does_not_change_with_time(self) -> None:
        live = (deployment(ONE, ready=1),)
        first = told(pool(ONE, **serving(ONE, deployments=live)))

        again = pool(ONE, status=first, service_revision=revision_hash(ONE), deployments=live)
        later = told(again, now=NOW + timedelta(days=1))

        assert later == first


def test_warmup_figures_are_of_the_serving_workers_that_are_ready() -> None:
    at = {"scheduled_at": NOW, "container_started_at": NOW}
    pods = tuple(
        pod(ONE, name=f"p{taken}", ready_at=NOW + timedelta(seconds=taken), **at)
        for taken in (10, 20, 30, 100)
    )
    others = (
        pod(ONE, name="cold", **at),
        pod("other", ready_at=NOW + timedelta(seconds=500), **at),
        pod(ONE, name="back-after-an-outage", ready_at=NOW + timedelta(days=5), **at),
        pod(ONE, name="restarted", scheduled_at=NOW, ready_at=NOW + timedelta(seconds=500)),
    )
    live = (deployment(ONE, ready=4),)

    assert told(pool(ONE, deployments=live, pods=pods + others)).warmup == WarmupStatus(
        p50_seconds=20, p95_seconds=100
    )


def test_warmup_figures_outlive_the_workers() -> None:
    known = WarmupStatus(p50_seconds=5, p95_seconds=6)

    assert told(pool(ONE, status=PoolStatus(warmup=known))).warmup == known


@pytest.mark.parametrize(("size", "ready", "expected"), [(1, 2, True), (2, 1, True), (3, 0, False)])
def test_a_size_not_acted_on_yet_says_nothing_against_ready_workers(size, ready, expected) -> None:
    of = spec(autoscaling={"minReplicas": 1, "maxReplicas": 3})
    live = (deployment(of, size=size, ready=ready, current=False),)

    status = told(pool(of, **serving(of, deployments=live)))

    assert condition(status, "Ready").status == str(expected)
