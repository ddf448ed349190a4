"""Events: each decision is told once, under a name that derives from it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pod, pool, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import Phase, PoolStatus
from zerolayer_operator.decide import events
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Pin, Problem

OLD, NEW = spec(), spec(drainSeconds=60)
AUTOSCALER = ChildKey("HorizontalPodAutoscaler", "pool")
LIVE = {"metadata": {"uid": "u"}}


def planned(observed: ObservedPool) -> list[str]:
    return [decision.reason for decision in events.planned(observed, plan(observed, DEFAULTS, NOW))]


def reported(observed: ObservedPool, *refused: Problem, now=NOW) -> list[events.Decision]:
    status = report(observed, plan(observed, DEFAULTS, NOW), refused, now)
    return list(events.reported(observed, status))


def serving(of, deployments: Any, **fields: Any) -> ObservedPool:
    revision = revision_hash(of)
    defaults: dict[str, Any] = {
        "status": PoolStatus(serving_revision=revision),
        "service_revision": revision,
        "deployments": deployments,
    }
    return pool(fields.pop("wants", of), **{**defaults, **fields})


def ready_pool(was: PoolSpec, **fields: Any) -> ObservedPool:
    """A pool that was ready as its spec asked until then."""
    size = 1 if was.replicas is None else was.replicas
    before = serving(was, (deployment(was, size=size, ready=size),))
    return serving(was, **{"status": report(before, plan(before, DEFAULTS, NOW), (), NOW), **fields})


def test_new_pool_tells_its_revision_and_the_request_that_was_added() -> None:
    assert planned(pool(OLD)) == ["RevisionCreated", "CPURequestSet"]
    asked = spec(worker={"device": "cpu", "resources": {"requests": {"cpu": 1}}})
    assert planned(pool(asked)) == ["RevisionCreated"]


def test_image_without_a_digest_is_told_with_its_revision() -> None:
    observed = pool(OLD, pins={"worker:1": Pin("worker:1", "docker.io answers 503")})
    (created, _) = events.planned(observed, plan(observed, DEFAULTS, NOW))

    assert created.message.endswith("; without the digest of worker image worker:1: docker.io answers 503")


def test_settled_pool_tells_nothing() -> None:
    assert planned(serving(OLD, (deployment(OLD, ready=1),))) == []


def test_switch_and_removal_are_told() -> None:
    both = (deployment(OLD, ready=1), deployment(NEW, ready=1))

    assert planned(serving(OLD, both, wants=NEW)) == ["Switched"]
    assert planned(serving(NEW, both)) == ["RevisionRemoved"]


def test_size_is_told_with_both_numbers() -> None:
    observed = serving(spec(replicas=3), (deployment(OLD, size=1, ready=1),))
    (decision,) = events.planned(observed, plan(observed, DEFAULTS, NOW))

    assert (decision.reason, "from 1 to 3" in decision.message) == ("Sized", True)


def test_start_and_end_of_autoscaling_are_told() -> None:
    scaled = spec(autoscaling={"maxReplicas": 3})
    live = (deployment(OLD, ready=1),)

    assert planned(serving(scaled, live)) == ["AutoscalingStarted"]
    assert planned(serving(OLD, live, children={AUTOSCALER: LIVE})) == ["AutoscalingStopped"]
    assert planned(serving(scaled, live, children={AUTOSCALER: LIVE})) == []


def test_network_policy_that_the_installation_wants_no_more_is_told() -> None:
    observed = serving(OLD, (deployment(OLD, ready=1),), children={ChildKey("NetworkPolicy", "pool"): LIVE})
    decided = plan(observed, replace(DEFAULTS, network_policy=False), NOW)

    (decision,) = events.planned(observed, decided)
    assert (decision.reason, decision.message) == (
        "ChildDeleted",
        "NetworkPolicy pool is deleted: nothing asks for it any more",
    )


def test_what_the_api_server_goes_on_refusing_is_not_told_again() -> None:
    """Events live for an hour, a refused child may stay refused for longer."""
    refused = Problem("ChildRefused", "no")
    new = pool(spec(autoscaling={"maxReplicas": 3}))
    status = report(new, plan(new, DEFAULTS, NOW), (refused,), NOW)
    again = replace(new, status=status)

    assert planned(new) == ["RevisionCreated", "CPURequestSet", "AutoscalingStarted"]
    assert planned(again) == []
    assert planned(replace(again, spec=spec(drainSeconds=60), generation=2)) == [
        "RevisionCreated",
        "CPURequestSet",
        "Switched",
    ]


def test_paused_pool_tells_no_plan() -> None:
    assert planned(pool(spec(paused=True, drainSeconds=60))) == []


def test_same_decision_has_the_same_name_and_another_one_another() -> None:
    observed = pool(OLD)
    decisions = list(events.planned(observed, plan(observed, DEFAULTS, NOW)))
    first = [events.event(observed, decision, NOW, "a")["metadata"]["name"] for decision in decisions]
    again = [
        events.event(observed, decision, NOW + timedelta(hours=1), "b")["metadata"]["name"]
        for decision in decisions
    ]
    other = pool(OLD, uid="another")

    assert first == again
    assert len(set(first)) == len(first)
    assert events.event(other, decisions[0], NOW, "a")["metadata"]["name"] not in first


def test_going_back_and_forth_is_told_each_time() -> None:
    """The generation tells two switches between the same revisions apart."""
    both = (deployment(OLD, ready=1), deployment(NEW, ready=1))
    keys = set()
    for generation, (now, wanted) in enumerate([(OLD, NEW), (NEW, OLD), (OLD, NEW)]):
        observed = serving(now, both, wants=wanted, generation=generation)
        keys |= {decision.key for decision in events.planned(observed, plan(observed, DEFAULTS, NOW))}

    assert len(keys) == 3


def test_event_is_about_the_pool() -> None:
    made = events.event(pool(OLD), events.Decision("k", "R", "m" * 5000), NOW, "pod-1")

    assert made["involvedObject"]["uid"] == "uid-pool"
    assert made["metadata"]["namespace"] == "default"
    assert len(made["message"]) == 1024
    assert made["reportingInstance"] == "pod-1"


class TestConditions:
    PROBLEM = Problem("ChildRefused", "no")
    FULL = Problem("Unschedulable", "no node")

    def test_first_status_of_a_pool_in_the_making_tells_nothing(self) -> None:
        assert reported(pool(OLD)) == []

    def test_readiness_is_told_once(self) -> None:
        live = (deployment(OLD, ready=1),)
        (first,) = reported(pool(OLD, deployments=live))

        assert (first.reason, first.type) == ("Ready", "Normal")
        assert reported(ready_pool(OLD, deployments=live)) == []

    @pytest.mark.parametrize(
        ("was", "now", "live", "reason"),
        [
            (OLD, spec(replicas=2), deployment(OLD, size=2, ready=1), "WorkersStarting"),
            (OLD, spec(replicas=2), deployment(OLD, size=1, ready=1), "WorkersStarting"),
            (OLD, OLD, deployment(OLD, ready=0), "WorkersStarting"),
            (spec(replicas=0), OLD, deployment(OLD, size=1), "WarmingUp"),
        ],
        ids=["grown", "about to grow", "worker replaced", "grown from zero"],
    )
    def test_ordinary_growing_gives_no_warning(self, was, now, live, reason) -> None:
        leaves = pod(OLD, gone_by=NOW + timedelta(seconds=90), problem=self.FULL)
        waits = pod(OLD, name="pod-2", problem=self.FULL)
        told = reported(ready_pool(was, wants=now, deployments=(live,), pods=(leaves, waits)))

        assert [(item.reason, item.type) for item in told] == [(reason, "Normal")]

    def test_worker_that_finds_no_place_once_the_other_is_gone_is_a_warning(self) -> None:
        stuck = pod(OLD, gone_by=NOW - timedelta(seconds=1))
        waits = pod(OLD, name="pod-2", problem=self.FULL)
        told = reported(ready_pool(OLD, deployments=(deployment(OLD),), pods=(stuck, waits)))

        assert [(item.reason, item.type) for item in told] == [
            ("NotReady", "Warning"),
            ("Unschedulable", "Warning"),
        ]

    @pytest.mark.parametrize("reason", ["WorkerFails", "OutOfMemory", "WorkerNotReady"])
    def test_readiness_lost_because_workers_fail_is_a_warning(self, reason: str) -> None:
        fails = pod(OLD, problem=Problem(reason, "it fails"))
        told = reported(ready_pool(OLD, deployments=(deployment(OLD),), pods=(fails,)))

        assert [(item.reason, item.type, item.message) for item in told] == [
            ("NotReady", "Warning", "it fails"),
            (reason, "Warning", "it fails"),
        ]

    def test_problem_and_its_end_are_told(self) -> None:
        observed = pool(OLD)
        (first,) = reported(observed, self.PROBLEM)
        status = report(observed, plan(observed, DEFAULTS, NOW), (self.PROBLEM,), NOW)
        troubled = pool(OLD, status=status)

        assert (first.reason, first.type) == ("ChildRefused", "Warning")
        assert reported(troubled, self.PROBLEM) == []
        assert [item.reason for item in reported(troubled, Problem("Other", "no"))] == ["Other"]
        assert [item.reason for item in reported(troubled)] == ["Recovered"]

    def test_pause_and_its_end_are_told(self) -> None:
        running = PoolStatus(phase=Phase.READY)
        (paused,) = [
            item for item in reported(pool(spec(paused=True), status=running)) if item.reason == "Paused"
        ]
        resumed = reported(pool(OLD, generation=2, status=PoolStatus(phase=Phase.PAUSED)))

        assert paused.key != next(item.key for item in resumed if item.reason == "Resumed")
