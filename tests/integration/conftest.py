"""One real API server for the whole suite, of its own; a namespace for every test."""

from collections.abc import AsyncIterator, Iterator

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.control_planes import control_plane, new_namespace
from zerolayer_dev.testing.guard import require_own_context
from zerolayer_dev.testing.preparation import prepare


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Kubernetes, and the registry of images, where they are missing."""
    prepare(session, "api", lambda: binaries.ensure((*binaries.CONTROL_PLANE, *binaries.CLIENTS)))
    prepare(session, "registry", lambda: binaries.ensure(["registry"]))


@pytest.fixture(scope="session")
def api() -> Iterator[LocalCluster]:
    """The cluster that tests share which break none of its parts."""
    with control_plane("integration") as cluster:
        yield cluster


@pytest.fixture
def namespace(api: LocalCluster) -> Iterator[str]:
    """A namespace of the test's own, with its default service account in place."""
    with new_namespace(api, "test") as name:
        yield name


@pytest.fixture
async def client(api: LocalCluster) -> AsyncIterator[ApiClient]:
    """An asyncio client of the suite's API server, and of no other."""
    require_own_context(api.kubeconfig, api.name)
    configuration = Configuration()
    await config.load_kube_config(config_file=str(api.kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as opened:
        yield opened
