"""Updates on a real control plane, whose autoscaler looks every second; simulated workers that answer."""

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
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_answers import Answers
from zerolayer_dev.testing.simulated_node import SimulatedNode
from zerolayer_dev.testing.update_pool import UpdatedPool

NAME = "p"
COLD_START_S = 1.0
_MANAGER = ("--horizontal-pod-autoscaler-sync-period=1s",)


@pytest.fixture(scope="session")
def api() -> Iterator[LocalCluster]:
    """A cluster without a scheduler: it would say of each pod that no node can run it."""
    with control_plane("updates", {"kube-controller-manager": _MANAGER}) as cluster:
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
def answers() -> Answers:
    """How the workers answer: well, until a test says something else of a revision."""
    return Answers()


@pytest.fixture
def node(api: LocalCluster, namespace: str, answers: Answers) -> Iterator[SimulatedNode]:
    """What the pool's workers run on."""
    load = SharedLoad(lambda _: 6.0)
    made = SimulatedNode(api, namespace, {NAME: load}, COLD_START_S, answers)
    with in_background(made.serve()):
        yield made


@pytest.fixture
def account(api: LocalCluster, namespace: str) -> Iterator[Account]:
    made = Account(api, namespace, watch=(namespace,))
    yield made
    made.remove()


@pytest.fixture
def addresses() -> str:
    """Addresses of Prometheus that pools may name; none unless a test has one."""
    return ""


@pytest.fixture
def operator(account: Account, tmp_path: Path, addresses: str) -> Iterator[OperatorProcess]:
    """The operator; it looks at canaries every second."""
    with replicas(account, tmp_path, lease_duration_s=5, canary_interval_s=1) as started:
        process = started("operator", prometheus_addresses=addresses)
        process.wait_role("leading")
        yield process
        assert process.records("ERROR", "CRITICAL") == []


@pytest.fixture
def make(
    api: LocalCluster,
    objects: pykube.HTTPClient,
    namespace: str,
    node: SimulatedNode,
    operator: OperatorProcess,
) -> Callable[..., UpdatedPool]:
    """Makes the test's pool by its spec: `make(replicas=3, update={…})`."""

    def make(**spec: Any) -> UpdatedPool:
        api.kubectl("apply", "--filename=-", stdin=json.dumps(cpu_pool(NAME, namespace, **spec)))
        return UpdatedPool(objects, api.kubectl, namespace, NAME)

    return make
