"""One real node for the whole suite, the chart installed on it, a namespace for every test."""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.images import build, engines, specs
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import gateway, kube
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.browser import prepare_browser
from zerolayer_dev.testing.guard import require_own_context
from zerolayer_dev.testing.pools import Pool, cpu_pool
from zerolayer_dev.testing.preparation import prepare
from zerolayer_dev.testing.release import Release, Values

CLUSTER = "e2e"
IMAGES = ("operator", "worker", "modelonly")
RESYNC_SECONDS = 5
PoolFactory = Callable[..., Pool]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives tests on real containers the time that weights and warm-up take on two cores."""
    for item in items:
        if item.path.is_relative_to(repo_root() / "tests" / "e2e") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Kubernetes and the images where they are missing."""
    prepare(session, "cluster", build_everything)
    prepare(session, "chromium", prepare_browser)
    prepare(session, "traefik", gateway.build)


def build_everything() -> None:
    binaries.ensure((*binaries.CONTROL_PLANE, *binaries.NODE, *binaries.ADDONS, *binaries.CLIENTS))
    build.build(IMAGES, engines.choose())


@pytest.fixture(scope="session")
def cluster() -> Iterator[clusters.Cluster]:
    """A node with the project's images; kept after the run where ZEROLAYER_KEEP_CLUSTER=1."""
    kept = os.environ.get("ZEROLAYER_KEEP_CLUSTER") == "1"
    # A name of its own, so that no run ends the cluster of another that goes on beside it.
    name = CLUSTER if kept else f"{CLUSTER}-{os.getpid()}"
    node = clusters.up(name, "node", tied=not kept)
    require_own_context(node.kubeconfig, name)
    for archive in build.build(IMAGES, engines.choose()):
        node.load_image(archive)
    yield node
    if not kept:
        node.down()


@pytest.fixture(scope="session")
def traefik(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[gateway.Gateway]:
    """A Gateway that takes the routes of every namespace."""
    if not isinstance(cluster, LocalCluster):
        raise clusters.UnsupportedError("Traefik runs beside CLUSTER=local alone")
    with gateway.Gateway(cluster, tmp_path_factory.mktemp("traefik")) as running:
        yield running


@pytest.fixture(scope="session")
def api(cluster: clusters.Cluster) -> Iterator[pykube.HTTPClient]:
    client = kube.client(cluster.kubeconfig)
    yield client
    client.session.close()


@pytest.fixture(scope="session")
def audit(cluster: clusters.Cluster) -> AuditLog:
    return AuditLog(cluster.audit_log)


@pytest.fixture(scope="session")
def chart_values() -> Values:
    """What every installation of this suite is made with."""
    return {
        "image": {"tag": "dev"},
        "worker": {"image": specs.reference("worker")},
        "allowHostPath": True,
        "resyncInterval": RESYNC_SECONDS,
    }


@pytest.fixture(scope="session")
def release(cluster: clusters.Cluster, api: pykube.HTTPClient, chart_values: Values) -> Release:
    """The operator, installed from the chart in this tree."""
    installed = Release(cluster, api, repo_root() / "charts" / "zerolayer")
    installed.install(chart_values)
    return installed


@pytest.fixture(scope="session")
def make_namespace(cluster: clusters.Cluster) -> Iterator[Callable[[str], str]]:
    """Makes namespaces at a Pod Security level, and removes them all in the end."""
    made: list[str] = []

    def make(level: str) -> str:
        name = f"pools-{secrets.token_hex(3)}"
        labels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn", "audit")}
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
        made.append(name)
        return name

    yield make
    for name in made:
        cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def namespace(make_namespace: Callable[[str], str], cluster: clusters.Cluster) -> Iterator[str]:
    """A namespace at the restricted level; its workers are gone before the next test begins."""
    name = make_namespace("restricted")
    yield name
    remove_workers(cluster, name)


@pytest.fixture
def open_namespace(make_namespace: Callable[[str], str], cluster: clusters.Cluster) -> Iterator[str]:
    """A namespace for what the restricted level forbids: host paths."""
    name = make_namespace("privileged")
    yield name
    remove_workers(cluster, name)


def remove_workers(cluster: clusters.Cluster, namespace: str) -> None:
    """Frees two cores quickly: pools go, then their pods without a drain."""
    cluster.kubectl("-n", namespace, "delete", "zlp", "--all", "--wait=false")
    cluster.kubectl("-n", namespace, "delete", "deployments", "--all", "--wait=true")
    cluster.kubectl("-n", namespace, "delete", "pods", "--all", "--grace-period=1", "--wait=true")


@pytest.fixture
def pool(cluster: clusters.Cluster, api: pykube.HTTPClient, release: Release, namespace: str) -> PoolFactory:
    """Makes a small CPU pool in the test's namespace: `pool("name", replicas=2)`."""

    def make(name: str, *, within: str = namespace, **spec: Any) -> Pool:
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(cpu_pool(name, within, **spec)))
        return Pool(api, cluster.kubectl, within, name)

    return make


@pytest.fixture(scope="session")
def serving_pool(
    cluster: clusters.Cluster,
    api: pykube.HTTPClient,
    release: Release,
    make_namespace: Callable[[str], str],
) -> Pool:
    """One ready worker that tests share as long as they only ask it."""
    within = make_namespace("restricted")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(cpu_pool("serving", within)))
    shared = Pool(api, cluster.kubectl, within, "serving")
    shared.wait_ready(1)
    return shared


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Shows what the operator said beside a failed test."""
    report = yield
    if report.failed and "release" in getattr(item, "funcargs", {}):
        report.sections.append(("operator", item.funcargs["release"].logs()))
    return report
