"""A cluster whose autoscaler looks every second; an operator, a Prometheus and workers for each test."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.control_planes import control_plane
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.metrics_thread import SettableMetrics, nothing
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.phased_workers import PhasedWorker, PhasedWorkers
from zerolayer_dev.testing.pools import POOL_LABEL, REVISION_LABEL, cpu_pool
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.scaled_pools import CONTROLLER_WINDOW_S, ScaledPool
from zerolayer_dev.testing.simulated_nodes import SimulatedNodes
from zerolayer_dev.testing.simulated_workers import Phase

_PAST_S = 15 * 60
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
def all_metrics(api: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SettableMetrics]:
    made = SettableMetrics()
    with made.serve(api, tmp_path_factory.mktemp("metrics")):
        yield made


@pytest.fixture
def metrics(all_metrics: SettableMetrics) -> Iterator[SettableMetrics]:
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
def workers() -> Iterator[PhasedWorkers]:
    """The pool's workers: for a quarter of an hour each has had two of its eight slots busy."""
    now = time.time()
    with PhasedWorkers(PhasedWorker((Phase(now - _PAST_S, now + 3600, 2.0),))) as made:
        yield made


@pytest.fixture
def nodes(api: LocalCluster, namespace: str, workers: PhasedWorkers) -> Iterator[SimulatedNodes]:
    def start(pod: Manifest) -> str:
        labels = pod["metadata"]["labels"]
        return workers.add(pod["metadata"]["name"], (namespace, labels[POOL_LABEL], labels[REVISION_LABEL]))

    with SimulatedNodes(api.kubeconfig, namespace, start) as made:
        yield made


@pytest.fixture
def prometheus(tmp_path: Path, workers: PhasedWorkers) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the workers."""
    made = Prometheus(tmp_path)
    try:
        made.start({workers.target: {}}, "1s")
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
    api: LocalCluster, account: Account, namespace: str, metrics: SettableMetrics, tmp_path: Path
) -> Iterator[Callable[..., OperatorProcess]]:
    """Starts operators that serve the test's namespace, one after the other: `start("name", setting=1)`."""
    kubeconfig = account.kubeconfig(tmp_path / "kubeconfig")
    started: list[OperatorProcess] = []

    def start(name: str, **settings: object) -> OperatorProcess:
        own: dict[str, object] = {
            "namespaces": namespace,
            "pod_namespace": namespace,
            "lease_name": account.name,
            "lease_duration_s": 5,
        }
        process = OperatorProcess(kubeconfig, tmp_path, name, **own | settings)
        process.start()
        started.append(process)
        process.wait_role("leading")
        return process

    yield start
    for process in started:
        if process.running:
            process.kill()


@pytest.fixture
def make(
    api: LocalCluster, objects: pykube.HTTPClient, namespace: str, nodes: SimulatedNodes
) -> Callable[..., ScaledPool]:
    """Makes a pool by its `spec.autoscaling`; its autoscaler asks for one value for all workers."""

    def make(**autoscaling: Any) -> ScaledPool:
        spec = {"maxReplicas": 6, "metric": {"type": "Utilization"}, **autoscaling}
        body = cpu_pool("p", namespace, autoscaling=spec)
        api.kubectl("apply", "--filename=-", stdin=json.dumps(body))
        return ScaledPool(objects, api.kubectl, namespace, "p")

    return make
