"""Installing, upgrading and uninstalling the operator leaves workers alone."""

from collections.abc import Iterator

import httpx
import pytest

from zerolayer_dev.testing.pools import DEMO_MODEL, Pool
from zerolayer_dev.testing.release import Release, Values

ANOTHER_IMAGE = "zerolayer.dev/worker:another"

pytestmark = pytest.mark.promise("chart-lifecycle")


@pytest.fixture
def restored(release: Release, chart_values: Values) -> Iterator[Release]:
    """The release, put back to what the suite shares when the test ends."""
    yield release
    release.install(chart_values)


def identities(pool: Pool) -> set[tuple[str, int]]:
    """Returns the worker pods by UID with their restarts."""
    return {
        (pod["metadata"]["uid"], status["restartCount"])
        for pod in pool.pods()
        for status in pod["status"]["containerStatuses"]
    }


def answers(pool: Pool) -> bool:
    body = {"model": DEMO_MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    return httpx.post(f"{pool.url}/v1/messages", json=body, trust_env=False, timeout=60).is_success


def touch(pool: Pool, unavailable: int) -> None:
    """Changes a field that needs no other pod, and waits until the operator has taken it in."""
    pool.change(disruption={"maxUnavailable": unavailable})
    pool.wait_ready(1, seconds=60)


def test_pools_survive_an_uninstall(
    restored: Release, chart_values: Values, serving_pool: Pool, pool, figures
) -> None:
    """Pools survive an operator uninstall, can be deleted meanwhile, and are picked up again."""
    doomed = pool(
        "doomed", worker={"device": "cpu", "image": "zerolayer.dev/none:none", "imagePullPolicy": "Never"}
    )
    doomed.wait(doomed.deployments, bool, what="a Deployment", seconds=60)
    before = identities(serving_pool)

    restored.uninstall()
    doomed.delete()
    doomed.wait(
        lambda: (doomed.deployments(), doomed.all_pods()),
        lambda left: left == ({}, []),
        what="its children to be gone",
        seconds=60,
    )
    assert answers(serving_pool)
    restored.install(chart_values)
    touch(serving_pool, 2)
    touch(serving_pool, 1)

    figures(workers=len(before), replaced=len(before - identities(serving_pool)))
    assert identities(serving_pool) == before
    assert "finalizers" not in serving_pool.manifest["metadata"]


def test_upgrade_restarts_no_worker(
    restored: Release, chart_values: Values, serving_pool: Pool, pool, figures
) -> None:
    """An upgrade to another pod template and default image restarts no worker; new pools get it."""
    before = identities(serving_pool)
    templates = {name: found["spec"]["template"] for name, found in serving_pool.deployments().items()}
    restored.install(chart_values | {"worker": {"image": ANOTHER_IMAGE, "imagePullPolicy": "Never"}})
    touch(serving_pool, 2)
    touch(serving_pool, 1)
    newer = pool("newer")
    newer.wait(newer.deployments, bool, what="a Deployment", seconds=60)

    (deployment,) = newer.deployments().values()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    figures(workers=len(before), replaced=len(before - identities(serving_pool)))
    assert identities(serving_pool) == before
    assert {
        name: found["spec"]["template"] for name, found in serving_pool.deployments().items()
    } == templates
    assert (container["image"], container["imagePullPolicy"]) == (ANOTHER_IMAGE, "Never")
