"""A cluster whose autoscaler looks every second; an operator, a Prometheus and workers for each test."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.background import in_background
from zerolayer_dev.testing.control_planes import control_plane
from zerolayer_dev.testing.external_metrics import ExternalMetrics, nothing
from zerolayer_dev.testing.operator_process import OperatorProcess, replicas
from zerolayer_dev.testing.pools import cpu_pool
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.scaled_pools import CONTROLLER_WINDOW_S, ScaledPool, asks
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_node import SimulatedNode

NAME = "p"
AUTOSCALING = {"maxReplicas": 6, "metric": {"type": "Utilization"}}
_MANAGER = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    f"--horizontal-pod-autoscaler-downscale-stabilization={CONTROLLER_WINDOW_S}s",
)


@pytest.fixture(scope="session")
def api() -> Iterator[LocalCluster]:
    """A cluster whose parts tests here may break."""
    with control_plane("field", {"kube-controller-manager": _MANAGER}) as cluster:
        # It would say of each pod that no node can run it.
        cluster.control.stop("kube-scheduler")
        yield cluster


@pytest.fixture(scope="session")
def all_metrics(api: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExternalMetrics]:
    made = ExternalMetrics(api, tmp_path_factory.mktemp("metrics"))
    with in_background(made.serve()):
        yield made


@pytest.fixture
def metrics(all_metrics: ExternalMetrics) -> Iterator[ExternalMetrics]:
    """What the autoscaler is told: nothing, until a test says something else."""
    all_metrics.answer = nothing
    yield all_metrics
    all_metrics.answer = nothing


@pytest.fixture(scope="session")
def objects(api: LocalCluster) -> Iterator[pykube.HTTPClient]:
    client = kube.client(api.kubeconfig)
    yield client
    client.session.close()


@pytest.fixture
def audit(api: LocalCluster) -> AuditLog:
    return AuditLog(api.audit_log)


@pytest.fixture
def load() -> SharedLoad:
    """What is asked of the pool: six slots of the eight that each worker has."""
    return SharedLoad(lambda _: 6.0)


@pytest.fixture
def node(api: LocalCluster, namespace: str, load: SharedLoad) -> Iterator[SimulatedNode]:
    """What the pool's workers run on."""
    made = SimulatedNode(api, namespace, {NAME: load})
    with in_background(made.serve()):
        yield made


@pytest.fixture
def prometheus(tmp_path: Path, node: SimulatedNode) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the workers."""
    made = Prometheus(tmp_path)
    try:
        made.start({node.target: {}}, "1s")
        yield made
    finally:
        made.stop()


@pytest.fixture
def account(api: LocalCluster, namespace: str) -> Iterator[Account]:
    made = Account(api, namespace, watch=(namespace,))
    yield made
    made.remove()


@pytest.fixture
def start(
    api: LocalCluster, account: Account, metrics: ExternalMetrics, tmp_path: Path
) -> Iterator[Callable[..., OperatorProcess]]:
    """Starts operators that serve the test's namespace, one after the other: `start("name", setting=1)`."""
    with replicas(account, tmp_path, lease_duration_s=5) as started:

        def start(name: str, **settings: object) -> OperatorProcess:
            process = started(name, **settings)
            process.wait_role("leading")
            return process

        yield start


@pytest.fixture
def write(
    api: LocalCluster, objects: pykube.HTTPClient, namespace: str, node: SimulatedNode
) -> Callable[..., ScaledPool]:
    """Makes the test's pool by its spec."""

    def write(**spec: Any) -> ScaledPool:
        api.kubectl("apply", "--filename=-", stdin=json.dumps(cpu_pool(NAME, namespace, **spec)))
        return ScaledPool(objects, api.kubectl, namespace, NAME)

    return write


@pytest.fixture
def make(write: Callable[..., ScaledPool]) -> Callable[..., ScaledPool]:
    """Makes a pool by its `spec.autoscaling`; its autoscaler asks for one value for all workers."""

    def make(**autoscaling: Any) -> ScaledPool:
        return write(autoscaling=AUTOSCALING | autoscaling)

    return make


@pytest.fixture
def make_old(
    write: Callable[..., ScaledPool], metrics: ExternalMetrics, node: SimulatedNode, prometheus: Prometheus
) -> Callable[..., ScaledPool]:
    """The same with so many workers that Prometheus has known for long: `make_old(3, maxReplicas=5)`.

    An operator has to run by then.
    """

    def make_old(size: int, **autoscaling: Any) -> ScaledPool:
        metrics.answer = asks(size)
        pool = write(replicas=size)
        pool.wait_workers(size)
        # As long as the operator does not ask them itself: it would see their counters jump.
        node.begin_earlier(prometheus)
        pool.change(replicas=None, autoscaling=AUTOSCALING | autoscaling)
        return pool

    return make_old
