"""Installing, upgrading and uninstalling the operator leaves workers alone."""

from collections.abc import Iterator

import httpx
import pytest

from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.pools import DEMO_MODEL, POOL_LABEL, Pool
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


def policies(pool: Pool) -> int:
    """Returns how many network policies belong to the pool."""
    listed = pool.kubectl(
        "-n", pool.namespace, "get", "netpol", "-l", f"{POOL_LABEL}={pool.name}", "-o", "name"
    )
    return len(listed.split())


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


@pytest.mark.promise("least-rbac")
def test_network_policies_go_and_come_with_their_switch(
    restored: Release, chart_values: Values, serving_pool: Pool, audit: AuditLog, figures
) -> None:
    """Switched off, network policies of pools go, by rights for just that; switched on, they are back."""
    before, mark = identities(serving_pool), audit.mark()
    assert policies(serving_pool) == 1
    # Its rights change before the operator does.
    with restored.upheaval():
        restored.install(chart_values | {"networkPolicy": {"enabled": False}})
    serving_pool.wait(lambda: policies(serving_pool), lambda left: left == 0, what="no policy", seconds=60)
    used = {
        call.permission.verb
        for call in audit.calls(user=restored.user, since=mark)
        if call.permission.resource == "networkpolicies" and call.allowed
    }
    with restored.upheaval():
        restored.install(chart_values)
    serving_pool.wait(lambda: policies(serving_pool), lambda made: made == 1, what="a policy", seconds=60)

    figures(workers=len(before), replaced=len(before - identities(serving_pool)))
    assert {"list", "delete"} <= used
    assert identities(serving_pool) == before
    assert [event["reason"] for event in serving_pool.events()].count("ChildDeleted") == 1
