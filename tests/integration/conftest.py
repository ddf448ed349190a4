"""One real API server for the whole suite, of its own; a namespace for every test."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from playwright.sync_api import Browser

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import gateway, kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.browser import browser, prepare_browser
from zerolayer_dev.testing.control_planes import control_plane, new_namespace
from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.guard import require_own_context
from zerolayer_dev.testing.malformed import MINIMAL
from zerolayer_dev.testing.pools import manifest
from zerolayer_dev.testing.preparation import prepare
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings
from zerolayer_operator.workqueue import PoolKey


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Kubernetes, the registry of images and Prometheus, where they are missing."""
    prepare(session, "api", lambda: binaries.ensure((*binaries.CONTROL_PLANE, *binaries.CLIENTS)))
    prepare(session, "registry", lambda: binaries.ensure(["registry"]))
    prepare(session, "chromium", prepare_browser)
    prepare(session, "prometheus", lambda: binaries.ensure(["prometheus"]))
    prepare(session, "gateway_api", gateway.build)


@pytest.fixture(scope="session")
def api() -> Iterator[LocalCluster]:
    """The cluster that tests share which break none of its parts."""
    with control_plane("integration") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def gateway_api(api: LocalCluster) -> None:
    """The Gateway API's definitions, for the rest of the run."""
    gateway.define(api)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that was not started yet."""
    made = Prometheus(tmp_path_factory.mktemp("prometheus"))
    yield made
    made.stop()


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with browser() as opened:
        yield opened


@pytest.fixture
def namespace(api: LocalCluster) -> Iterator[str]:
    """A namespace of the test's own, with its default service account in place."""
    with new_namespace(api, "test") as name:
        yield name


@pytest.fixture
def apply_pool(api: LocalCluster, namespace: str) -> Callable[..., None]:
    """Applies a pool of the least that one consists of, without canaries: `apply_pool("name", …)`."""

    def apply(name: str, **spec: Any) -> None:
        body = manifest(name, namespace, {**MINIMAL, "update": {"strategy": "Immediate"}, **spec})
        api.kubectl("apply", "--filename=-", stdin=json.dumps(body))

    return apply


@pytest.fixture
async def client(api: LocalCluster) -> AsyncIterator[ApiClient]:
    """An asyncio client of the suite's API server, and of no other."""
    require_own_context(api.kubeconfig, api.name)
    configuration = Configuration()
    await config.load_kube_config(config_file=str(api.kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as opened:
        yield opened


class Unwatched(Reconciler):
    """Looks at a pool when a test says so, and only then; no watch tells it of changes."""

    def __init__(self, client: ApiClient, settings: Settings, **more: Any) -> None:
        super().__init__(client, settings, Heartbeat(60), **more)
        self.queue._closed = True

    async def reconcile(self, namespace: str, name: str) -> None:
        self.changed(PoolKey(namespace, name))
        await super().reconcile(namespace, name)


@pytest.fixture
async def by_hand() -> AsyncIterator[Callable[..., Reconciler]]:
    """Makes reconcilers that nobody but the test asks for a look, as `by_hand(client, settings)`."""
    made: list[Reconciler] = []

    def make(client: ApiClient, settings: Settings, **more: Any) -> Reconciler:
        made.append(Unwatched(client, settings, **more))
        return made[-1]

    yield make
    for reconciler in made:
        await reconciler.tuner.close()
        await reconciler.assessor.close()


@pytest.fixture
def start(api: LocalCluster, namespace: str) -> Iterator[Callable[[str], None]]:
    """Stands in for nodes until a pool has a ready worker: without them their lack is all that is told."""
    objects = kube.client(api.kubeconfig)

    def start(pool: str) -> None:
        def look() -> str:
            make_ready(api, objects, namespace, pool)
            path = "jsonpath={.items[*].status.readyReplicas}"
            return api.kubectl(
                "-n", namespace, "get", "deployments", f"-lzerolayer.dev/pool={pool}", "-o", path
            )

        wait_for(look, until=bool, what="a ready worker", seconds=30)

    yield start
    objects.session.close()


@pytest.fixture
async def client_of(
    api: LocalCluster, tmp_path: Path
) -> AsyncIterator[Callable[[Account], Awaitable[ApiClient]]]:
    """Connects with an account's rights and no others."""
    clients: list[ApiClient] = []

    async def connect(account: Account) -> ApiClient:
        configuration = Configuration()
        kubeconfig = account.kubeconfig(tmp_path / "kubeconfig")
        await config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
        clients.append(ApiClient(configuration))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


@pytest.fixture
def define(api: LocalCluster) -> Iterator[Callable[[str], Path]]:
    """Defines what other software would, from a file in `definitions/`, for as long as the test takes."""
    made: list[Path] = []

    def define(name: str) -> Path:
        definition = Path(__file__).parent / "definitions" / f"{name}.yaml"
        made.append(definition)
        api.kubectl("create", f"--filename={definition}")
        path = "{.status.conditions[?(@.type=='Established')].status}=True"
        api.kubectl("wait", f"--for=jsonpath={path}", f"--filename={definition}")
        return definition

    yield define
    for definition in made:
        api.kubectl("delete", "--ignore-not-found", f"--filename={definition}")
