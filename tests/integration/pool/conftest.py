"""One operator process for this folder's tests, with the chart's rights, and a namespace that they share."""

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.control_planes import new_namespace
from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.pools import Pool, cpu_pool

MakePool = Callable[..., Pool]
RESYNC_SECONDS = 1


@pytest.fixture(scope="session")
def objects(api: LocalCluster) -> Iterator[pykube.HTTPClient]:
    client = kube.client(api.kubeconfig)
    yield client
    client.session.close()


@pytest.fixture(scope="session")
def pools_namespace(api: LocalCluster) -> Iterator[str]:
    with new_namespace(api, "pools") as name:
        yield name


@pytest.fixture(scope="session")
def account(api: LocalCluster, pools_namespace: str) -> Iterator[Account]:
    made = Account(api, pools_namespace, watch=(pools_namespace,))
    yield made
    made.remove()


@pytest.fixture(scope="session")
def operator(
    account: Account, pools_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    folder = tmp_path_factory.mktemp("operator")
    process = OperatorProcess(
        account.kubeconfig(folder / "kubeconfig"),
        folder,
        "pools",
        namespaces=pools_namespace,
        pod_namespace=pools_namespace,
        lease_name=account.name,
        resync_interval_s=RESYNC_SECONDS,
    )
    process.start()
    process.wait_role("leading")
    yield process
    if process.running:
        process.kill()


@pytest.fixture(autouse=True)
def no_traceback(operator: OperatorProcess) -> Iterator[None]:
    """Whatever a test does to pools, the operator logs no error."""
    before = len(operator.records("ERROR", "CRITICAL"))
    yield
    assert operator.records("ERROR", "CRITICAL")[before:] == []


@pytest.fixture
def make_pool(
    api: LocalCluster, objects: pykube.HTTPClient, pools_namespace: str, operator: OperatorProcess
) -> Iterator[MakePool]:
    """Makes a pool under a name of its own: `make_pool(replicas=2)`; it is deleted after the test."""
    made: list[Pool] = []

    def make(name: str = "", **spec: Any) -> Pool:
        name = name or f"p-{secrets.token_hex(3)}"
        api.kubectl("apply", "--filename=-", stdin=json.dumps(cpu_pool(name, pools_namespace, **spec)))
        made.append(Pool(objects, api.kubectl, pools_namespace, name))
        return made[-1]

    yield make
    for pool in made:
        pool.kubectl("-n", pool.namespace, "delete", "zlp", pool.name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def warm(api: LocalCluster) -> Callable[[Pool, int], None]:
    """Stands in for nodes until a pool is ready at a size."""

    def warm(pool: Pool, replicas: int = 1) -> None:
        def look() -> Any:
            make_ready(api, pool.api, pool.namespace, pool.name)
            return pool.manifest

        def ready(manifest: Any) -> bool:
            status = manifest.get("status", {})
            current = status.get("observedGeneration") == manifest["metadata"]["generation"]
            return current and status["phase"] == "Ready" and status["ready"] == f"{replicas}/{replicas}"

        pool.wait(look, ready, what=f"{replicas} ready workers", seconds=60)

    return warm
