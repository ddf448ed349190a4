"""Revisions and sizes on a real API server, with pods said to be ready by the test."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import Pool, names

Warm = Callable[..., None]


def child(pool: Pool, kind: type[pykube.objects.NamespacedAPIObject]) -> Manifest | None:
    found = kind.objects(pool.api, namespace=pool.namespace).get_or_none(name=pool.name)
    return found.obj if found is not None else None


def selected(pool: Pool) -> str:
    service = child(pool, pykube.Service)
    return service["spec"]["selector"]["zerolayer.dev/revision"] if service else ""


def target(pool: Pool) -> str:
    autoscaler = child(pool, pykube.HorizontalPodAutoscaler)
    return autoscaler["spec"]["scaleTargetRef"]["name"].rsplit("-", 1)[-1] if autoscaler else ""


@contextmanager
def sizes_seen(pool: Pool, revision: str) -> Iterator[list[int]]:
    """Every size that a revision's Deployment has meanwhile, as a watch tells them."""
    seen: list[int] = []
    done = threading.Event()
    query = pykube.Deployment.objects(pool.api, namespace=pool.namespace)
    name = f"{pool.name}-{revision}"

    def follow() -> None:
        for event in query.watch():
            if event.object.name == name:
                seen.append(event.object.obj["spec"]["replicas"])
            if done.is_set() and event.object.obj["metadata"].get("annotations", {}).get("test/end"):
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    yield seen
    done.set()
    pool.kubectl("-n", pool.namespace, "annotate", "deployment", name, "test/end=1")
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_change_is_served_only_once_it_is_warm(api: LocalCluster, make_pool, warm: Warm) -> None:
    pool = make_pool(replicas=2)
    warm(pool, 2)
    old = pool.status["servingRevision"]
    assert selected(pool) == old

    pool.change(drainSeconds=20)
    pool.wait(pool.deployments, lambda found: len(found) == 2, what="two revisions", seconds=30)
    (new,) = set(pool.deployments()) - {old}
    pool.wait(lambda: len(pool.pods(revision=new)), lambda count: count == 2, what="new pods", seconds=30)
    pool.wait(lambda: pool.status["phase"], lambda phase: phase != "Ready", what="another phase", seconds=30)
    assert selected(pool) == old
    assert pool.status["servingRevision"] == old
    assert pool.status["readyReplicas"] == 2

    warm(pool, 2)
    assert selected(pool) == pool.status["servingRevision"] == new
    pool.wait(pool.deployments, lambda found: set(found) == {new}, what="one revision", seconds=30)
    budget = json.loads(pool.kubectl("-n", pool.namespace, "get", "pdb", pool.name, "-o", "json"))
    assert budget["spec"]["selector"]["matchLabels"]["zerolayer.dev/revision"] == new
    assert new in pool.status["selector"]
    reasons = [event["reason"] for event in pool.events()]
    assert reasons.count("Switched") == reasons.count("RevisionRemoved") == 1
    assert reasons.count("RevisionCreated") == 2


def test_change_taken_back_leaves_the_serving_pods_alone(make_pool, warm: Warm) -> None:
    pool = make_pool()
    warm(pool)
    old, pods = pool.status["servingRevision"], names(pool.pods())

    pool.change(drainSeconds=20)
    pool.wait(pool.deployments, lambda found: len(found) == 2, what="two revisions", seconds=30)
    pool.change(drainSeconds=30)
    pool.wait(pool.deployments, lambda found: set(found) == {old}, what="the old one alone", seconds=30)

    assert names(pool.pods(revision=old)) == pods
    assert selected(pool) == old


def test_change_that_finds_no_room_says_so_and_the_old_revision_serves_on(make_pool, warm: Warm) -> None:
    """There is no node here, so the scheduler really refuses the new pods."""
    pool = make_pool()
    warm(pool)
    old = pool.status["servingRevision"]

    pool.change(drainSeconds=20)
    found = pool.wait_condition("Degraded", "True", reason="NoRoomForUpdate", seconds=60)

    assert old in found["message"]
    assert "keeps serving" in found["message"]
    assert pool.condition("Ready")["status"] == "True"
    assert selected(pool) == old


class TestSizes:
    def test_autoscaling_and_back_at_four_workers_never_dips(self, make_pool, warm: Warm) -> None:
        pool = make_pool(replicas=4)
        warm(pool, 4)
        revision = pool.status["servingRevision"]
        with sizes_seen(pool, revision) as sizes:
            pool.change(replicas=None, autoscaling={"minReplicas": 1, "maxReplicas": 8})
            pool.wait(lambda: target(pool), lambda found: found == revision, what="an autoscaler", seconds=30)
            warm(pool, 4)
            pool.change(replicas=4, autoscaling=None)
            pool.wait(lambda: target(pool), lambda found: not found, what="no autoscaler", seconds=30)
            warm(pool, 4)
        assert set(sizes) == {4}
        assert pool.status["servingRevision"] == revision

    def test_autoscaled_pool_keeps_its_size_over_a_switch(self, make_pool, warm: Warm) -> None:
        pool = make_pool(autoscaling={"minReplicas": 1, "maxReplicas": 6})
        warm(pool)
        old = pool.status["servingRevision"]
        # Stands in for the autoscaler, which has no metrics here.
        pool.kubectl("-n", pool.namespace, "scale", f"deployment/{pool.name}-{old}", "--replicas=3")
        warm(pool, 3)

        pool.change(drainSeconds=20)
        warm(pool, 3)

        new = pool.status["servingRevision"]
        assert new != old
        assert target(pool) == new
        assert pool.deployments()[new]["spec"]["replicas"] == 3

    def test_autoscaler_gets_the_bounds_and_behaviour_of_the_spec(self, make_pool) -> None:
        scale_up = {
            "stabilizationWindowSeconds": 30,
            "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
        }
        pool = make_pool(
            autoscaling={
                "minReplicas": 2,
                "maxReplicas": 6,
                "metric": {"target": 60},
                "scaleDown": {"mode": "Fixed", "fixedWindow": "2m30s"},
                "scaleUp": scale_up,
            }
        )
        pool.wait(lambda: target(pool), bool, what="an autoscaler", seconds=30)
        text = pool.kubectl("-n", pool.namespace, "get", "hpa", pool.name, "-o", "json")
        spec = json.loads(text)["spec"]
        assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 6)
        assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 150
        assert spec["behavior"]["scaleUp"]["policies"] == scale_up["policies"]
        resource = spec["metrics"][0]["containerResource"]
        assert (resource["container"], resource["name"]) == ("zerolayer-worker", "cpu")
        assert resource["target"] == {"type": "Utilization", "averageUtilization": 60}

    @pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 0)])
    def test_kubectl_scale_sizes_a_fixed_pool(self, make_pool, warm: Warm, before, after) -> None:
        pool = make_pool(replicas=before)
        warm(pool, before)
        pool.kubectl("-n", pool.namespace, "scale", "zlp", pool.name, f"--replicas={after}")
        warm(pool, after)
        assert len(pool.deployments()) == 1

    def test_size_edited_by_hand_is_put_back(self, make_pool, warm: Warm) -> None:
        pool = make_pool(replicas=2)
        warm(pool, 2)
        revision = pool.status["servingRevision"]
        pool.kubectl("-n", pool.namespace, "scale", f"deployment/{pool.name}-{revision}", "--replicas=5")
        pool.wait(
            lambda: [event["message"] for event in pool.events() if event["reason"] == "Sized"],
            lambda told: told == [f"revision {revision} goes from 5 to 2 workers"],
            what="the size to be put back",
            seconds=30,
        )
        warm(pool, 2)
