"""One real API server for the whole suite, of its own; a namespace for every test."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.cluster import binaries
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.guard import require_own_context
from zerolayer_dev.testing.preparation import prepare

CLUSTER = f"integration-{os.getpid()}"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Kubernetes, and the registry of images, where they are missing."""
    prepare(session, "api", lambda: binaries.ensure((*binaries.CONTROL_PLANE, *binaries.CLIENTS)))
    prepare(session, "registry", lambda: binaries.ensure(["registry"]))


@pytest.fixture(scope="session")
def api() -> Iterator[clusters.Cluster]:
    """API server, etcd, controller manager and scheduler; it ends with this process, however that ends."""
    cluster = clusters.up(CLUSTER, "control-plane", tied=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        require_own_context(cluster.kubeconfig, CLUSTER)
        crds = sorted((repo_root() / "crds").glob("*.yaml"))
        if crds:
            cluster.kubectl("create", *(f"--filename={path}" for path in crds))
            # A definition has no conditions at all at first, which the second command can't bear.
            cluster.kubectl(
                "wait", "--for=jsonpath={.status.acceptedNames.plural}=zerolayerpools", "crd", "--all"
            )
            cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
        yield cluster
    cluster.down()


@pytest.fixture
def namespace(api: clusters.Cluster) -> Iterator[str]:
    """A namespace of the test's own, with its default service account in place."""
    name = f"test-{secrets.token_hex(4)}"
    api.kubectl("create", "namespace", name)
    api.kubectl("-n", name, "wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    yield name
    api.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
async def client(api: clusters.Cluster) -> AsyncIterator[ApiClient]:
    """An asyncio client of the suite's API server, and of no other."""
    require_own_context(api.kubeconfig, CLUSTER)
    configuration = Configuration()
    await config.load_kube_config(config_file=str(api.kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as opened:
        yield opened
