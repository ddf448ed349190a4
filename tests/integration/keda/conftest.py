"""A cluster with the real KEDA, an operator with the chart's rights, and nodes that are only made believe."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import keda as real_keda
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.background import in_background
from zerolayer_dev.testing.control_planes import control_plane
from zerolayer_dev.testing.keda import Keda
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.pools import Pool, cpu_pool
from zerolayer_dev.testing.preparation import prepare
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.simulated_node import SimulatedNode

NAME = "p"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds KEDA where it is missing and a test will use it."""
    prepare(session, "keda", real_keda.build)


@pytest.fixture(scope="module")
def api() -> Iterator[LocalCluster]:
    """A cluster of its own: there is one external metrics API in each."""
    with control_plane("keda") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def keda(api: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keda]:
    """KEDA, which runs."""
    made = Keda(api, tmp_path_factory.mktemp("keda"))
    made.install()
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def objects(api: LocalCluster) -> Iterator[pykube.HTTPClient]:
    client = kube.client(api.kubeconfig)
    yield client
    client.session.close()


@pytest.fixture(scope="module")
def audit(api: LocalCluster) -> AuditLog:
    return AuditLog(api.audit_log)


@pytest.fixture
def account(api: LocalCluster, namespace: str, keda: Keda) -> Iterator[Account]:
    made = Account(api, namespace, (namespace,), keda={"enabled": True})
    yield made
    made.remove()


@pytest.fixture
def operator(account: Account, prometheus: Prometheus, tmp_path: Path) -> Iterator[OperatorProcess]:
    """The operator, told of a Prometheus that has to run by now."""
    process = OperatorProcess(
        account.kubeconfig(tmp_path / "kubeconfig"),
        tmp_path,
        "operator",
        namespaces=account.namespace,
        pod_namespace=account.namespace,
        lease_name=account.name,
        resync_interval_s=1,
        keda=True,
        prometheus_addresses=prometheus.url,
    )
    process.start()
    process.wait_role("leading")
    yield process
    if process.running:
        process.kill()


@pytest.fixture
def nodes(api: LocalCluster, namespace: str) -> Iterator[None]:
    """Stands in for nodes as long as the test takes: a worker is ready as soon as it is there."""
    with in_background(SimulatedNode(api, namespace, {}).serve()):
        yield


@pytest.fixture
def make(
    api: LocalCluster, objects: pykube.HTTPClient, operator: OperatorProcess, namespace: str
) -> Callable[..., Pool]:
    """Makes a pool that KEDA sizes: `make(metric={…})`."""

    def make(name: str = NAME, **autoscaling: Any) -> Pool:
        scaled = {"provider": "KEDA", "maxReplicas": 9, **autoscaling}
        pool = cpu_pool(name, namespace, autoscaling=scaled)
        api.kubectl("apply", "--filename=-", stdin=json.dumps(pool))
        return Pool(objects, api.kubectl, namespace, name)

    return make
