"""The operator is killed before and after each of its calls in an update: the end is as if it never was."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import bundles, kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.end_state import EndState, end_state
from zerolayer_dev.testing.fault_points import EveryCall, NoCall
from zerolayer_dev.testing.pools import cpu_pool, is_ready
from zerolayer_dev.testing.simulated_node import SimulatedNode
from zerolayer_dev.testing.struck_operator import Points, StruckOperator
from zerolayer_dev.testing.update_courses import COURSES, Course
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = [
    pytest.mark.promise("killed-at-every-step"),
    pytest.mark.long,
    pytest.mark.timeout(1800),
]

SIZE = 3
# A window and a floor that follow the load would differ with what an operator has seen of it since its start.
SCALING = {"minReplicas": 2, "maxReplicas": 6, "scaleDown": {"mode": "Fixed", "fixedWindow": "2m"}}
UPDATE = {"strategy": "Canary", "canaryWeight": 20, "soak": "1h"}
NAME = "p"
PATIENCE_S = 900

Anchors = dict[str, tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def anchors(tmp_path_factory: pytest.TempPathFactory) -> Anchors:
    """ConfigMap and spec of each version of an anchor."""
    folder = tmp_path_factory.mktemp("bundles")
    made: Anchors = {}
    for seed, version in enumerate(("v1", "v2", "v3")):
        bundle = bundles.noisy_bundle(folder / version, version, noise=0.01, seed=seed)
        name = f"facts-{version}"
        made[version] = (
            bundles.config_map(name, "", folder / version),
            bundles.anchor_spec(bundle, name),
        )
    return made


class Stage:
    """A pool whose operator may die of its calls.

    Attributes:
        operator: which may.
        short: where fewer workers than before had the requests while it was dead.
    """

    def __init__(self, cluster: LocalCluster, account: Account, folder: Path, anchors: Anchors) -> None:
        self.operator = StruckOperator(cluster, account, folder, self._look)
        self.short: list[str] = []
        self._cluster, self._anchors = cluster, anchors
        # The operator's death is looked at from another thread.
        self._pool, self._seen = (
            UpdatedPool(kube.client(cluster.kubeconfig), cluster.kubectl, account.namespace, NAME)
            for _ in range(2)
        )
        for body, _ in anchors.values():
            self._apply({**body, "metadata": {**body["metadata"], "namespace": account.namespace}})

    def run(self, course: Course, points: Points) -> EndState:
        """Makes a pool, has its update go some way, and returns what is there then; the pool is deleted."""
        pool, self.operator.points = self._pool, points
        spec = {"autoscaling": SCALING, "update": UPDATE | course.update, "anchor": self._anchors["v1"][1]}
        self._apply(cpu_pool(NAME, pool.namespace, **spec))
        pool.wait_phase("Ready")
        # Stands in for the autoscaler, which has no metrics here.
        blue = pool.status["servingRevision"]
        pool.kubectl("-n", pool.namespace, "scale", f"deployment/{NAME}-{blue}", f"--replicas={SIZE}")
        pool.wait_workers(SIZE)
        self.operator.wait_quiet(seconds=PATIENCE_S)
        points.armed = True
        course.go(pool, lambda version: pool.change(anchor=self._anchors[version][1]))
        self.operator.wait_quiet(seconds=PATIENCE_S)
        points.armed = False
        left = end_state(pool)
        pool.delete()
        pool.wait(lambda: left_of(pool), lambda found: not found, what="no children", seconds=60)
        return left

    def _apply(self, body: dict[str, Any]) -> None:
        self._cluster.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(body))

    def _look(self) -> None:
        ready = served(self._seen)
        if ready < SIZE:
            self.short.append(f"{ready} workers of {SIZE}")


def left_of(pool: UpdatedPool) -> str:
    """What the garbage collector has not taken away yet."""
    kinds = "deploy,rs,pod,svc,hpa,pdb,netpol,sa,cm"
    return pool.kubectl("-n", pool.namespace, "get", kinds, f"-lzerolayer.dev/pool={pool.name}", "-o", "name")


def served(pool: UpdatedPool) -> int:
    """Workers that are ready and get the requests that name nothing."""
    service = pykube.Service.objects(pool.api, namespace=pool.namespace).get_by_name(pool.name).obj
    selector = service["spec"]["selector"]
    pods = kube.objects(pool.api, pykube.Pod, namespace=pool.namespace, selector=selector)
    return sum(is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in pods)


@pytest.fixture
def stage(
    api: LocalCluster, account: Account, node: SimulatedNode, tmp_path: Path, anchors: Anchors
) -> Iterator[Stage]:
    made = Stage(api, account, tmp_path, anchors)
    with made.operator:
        yield made
        assert made.operator.process.records("ERROR", "CRITICAL") == []


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name.replace(" ", "-"))
def test_killed_before_and_after_every_call(stage: Stage, course: Course, figures) -> None:
    """Killed before and after every API call of an update the operator leaves what one does that lives on."""
    points = EveryCall()
    undisturbed = stage.run(course, NoCall())
    struck = stage.run(course, points)
    figures(
        update=course.name,
        points_of_writes=points.writes,
        points_of_reads=points.reads,
        kills=stage.operator.kills,
        children=len(struck.children),
        events=struck.events.total(),
    )

    assert struck.children == undisturbed.children
    assert struck.status == undisturbed.status
    assert struck.events == undisturbed.events
    assert stage.short == []
    assert [entry["end"] for entry in struck.status["history"]] == list(course.ends)
