"""Tags become digests once per revision: a real registry, a real API server."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.registry import Registry
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

NAME = "p"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    made = Registry(tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def reconcile(
    api: LocalCluster,
    client: ApiClient,
    namespace: str,
    registry: Registry,
    apply_pool: Callable[..., None],
) -> Callable[..., Any]:
    """Applies the pool and reconciles it once; returns its revisions by what the status says of them."""

    async def reconcile(*, allowed: bool = True, **spec: Any) -> list[dict[str, Any]]:
        apply_pool(NAME, **spec)
        settings = Settings(
            worker_image=f"{registry.host}/worker:1",
            pod_name="test",
            registries=(f"http://{registry.host}",) if allowed else (),
        )
        await Reconciler(client, settings, Heartbeat(60)).reconcile(namespace, NAME)
        pool = json.loads(api.kubectl("-n", namespace, "get", "zlp", NAME, "-o", "json"))
        return pool["status"]["revisions"]

    return reconcile


def pods(api: LocalCluster, namespace: str) -> list[dict[str, Any]]:
    found = json.loads(api.kubectl("-n", namespace, "get", "deployments", "-o", "json"))["items"]
    return [item["spec"]["template"]["spec"] for item in found]


async def test_revision_keeps_the_digests_that_it_was_made_with(
    api: LocalCluster, namespace: str, registry: Registry, reconcile
) -> None:
    worker, weights = registry.push("worker", "1", "one"), registry.push("models/m", "1", "one")
    model = {"name": "m", "source": {"image": {"reference": f"{registry.host}/models/m:1"}}}
    (first,) = await reconcile(model=model)

    assert first["image"] == f"{registry.host}/worker:1@{worker}"
    assert first["modelImage"] == f"{registry.host}/models/m:1@{weights}"
    assert "unpinned" not in first
    (pod,) = pods(api, namespace)
    assert pod["containers"][0]["image"] == first["image"]
    assert [item["image"]["reference"] for item in pod["volumes"] if "image" in item] == [first["modelImage"]]

    moved = registry.push("worker", "1", "two")
    assert moved != worker
    assert await reconcile(model=model) == [first]
    assert pods(api, namespace) == [pod]

    second = next(
        item for item in await reconcile(model=model, drainSeconds=60) if item["name"] != first["name"]
    )
    assert second["image"] == f"{registry.host}/worker:1@{moved}"
    assert second["modelImage"] == first["modelImage"]


async def test_registry_that_is_away_costs_the_digest_and_nothing_else(
    api: LocalCluster, namespace: str, registry: Registry, reconcile
) -> None:
    registry.stop()
    (first,) = await reconcile()

    assert first["image"] == f"{registry.host}/worker:1"
    assert f"worker image {registry.host}/worker:1: {registry.host} can't be asked" in first["unpinned"]
    (pod,) = pods(api, namespace)

    registry.start()
    registry.push("worker", "1", "one")
    assert await reconcile() == [first]
    assert pods(api, namespace) == [pod]


async def test_registry_that_is_not_listed_is_not_asked(registry: Registry, reconcile) -> None:
    registry.push("worker", "1", "one")
    (first,) = await reconcile(allowed=False)

    assert first["image"] == f"{registry.host}/worker:1"
    assert "chart value registries" in first["unpinned"]
