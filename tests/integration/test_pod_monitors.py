"""PodMonitors of pools: with the chart's rights, and a definition that comes only later."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator import metrics
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

DEFINITION = "podmonitors"
NAME = "p"
SWITCHED_ON = {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}}


@pytest.fixture
async def operator(
    api: LocalCluster,
    namespace: str,
    client_of: Callable[[Account], Any],
    apply_pool: Callable[..., None],
    request: pytest.FixtureRequest,
) -> AsyncIterator[Reconciler]:
    """An operator with the switch on, or off for a test that asks for it, and one pool."""
    switch = SWITCHED_ON | {"enabled": request.param if hasattr(request, "param") else True}
    account = Account(api, namespace, (namespace,), pools={"podMonitor": switch})
    settings = Settings(
        worker_image="worker:1",
        pod_name="test",
        namespaces=(namespace,),
        pod_monitor=switch["enabled"],
        pod_monitor_interval=switch["interval"],
        pod_monitor_labels=switch["labels"],
    )
    # Without workers: pods that find no node would go on changing the status.
    apply_pool(NAME, replicas=0)
    yield Reconciler(await client_of(account), settings, Heartbeat(60))
    account.remove()


async def resync(operator: Reconciler) -> None:
    await operator.resync()
    await operator.queue.drain()


def read(api: LocalCluster, namespace: str, kind: str) -> dict[str, Any]:
    said = api.kubectl("-n", namespace, "get", kind, NAME, "-o", "json", "--ignore-not-found")
    return json.loads(said) if said.strip() else {}


def writes() -> float:
    return metrics.API_WRITES.labels(kind="PodMonitor", verb="apply")._value.get()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_definition_that_comes_later_is_picked_up_by_a_resync(
    api: LocalCluster, namespace: str, operator: Reconciler, define, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await resync(operator)
    (complaint,) = complaints(caplog)
    assert "monitoring.coreos.com/v1 does not define them" in complaint
    before = read(api, namespace, "zlp")
    degraded = next(item for item in before["status"]["conditions"] if item["type"] == "Degraded")
    assert degraded["status"] == "False"
    assert read(api, namespace, "pdb") != {}

    define(DEFINITION)
    await resync(operator)

    monitor = read(api, namespace, "podmonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (owner,) = monitor["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("ZeroLayerPool", before["metadata"]["uid"])
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["interval"]) == ("ops", "15s")
    deployment = json.loads(api.kubectl("-n", namespace, "get", "deployments", "-o", "json"))["items"][0]
    template = deployment["spec"]["template"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert set(monitor["spec"]["podTargetLabels"]) <= set(template["metadata"]["labels"])
    assert "ops" in {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert complaints(caplog) == [complaint]


async def test_hands_are_corrected_and_a_steady_one_costs_no_write(
    api: LocalCluster, namespace: str, operator: Reconciler, define
) -> None:
    define(DEFINITION)
    await resync(operator)
    made = read(api, namespace, "podmonitor")
    seen = writes()
    assert seen > 0
    for _ in range(3):
        await resync(operator)
    assert writes() == seen

    edit = json.dumps({"spec": {"podTargetLabels": ["app"], "sampleLimit": 5}})
    api.kubectl("-n", namespace, "patch", "podmonitor", NAME, "--type=merge", f"--patch={edit}")
    await resync(operator)
    spec = read(api, namespace, "podmonitor")["spec"]
    assert spec == {**made["spec"], "sampleLimit": 5}, "what others own is left alone"

    api.kubectl("-n", namespace, "delete", "podmonitor", NAME)
    await resync(operator)
    assert read(api, namespace, "podmonitor")["spec"] == made["spec"]


async def test_definition_that_goes_stops_nothing_else(
    api: LocalCluster, namespace: str, operator: Reconciler, define, caplog: pytest.LogCaptureFixture
) -> None:
    definition = define(DEFINITION)
    await resync(operator)
    api.kubectl("delete", f"--filename={definition}")
    wait_for(
        lambda: "podmonitors" not in api.kubectl("api-resources", "--no-headers", "-o", "name"),
        what="the definition to be gone",
        seconds=30,
    )
    api.kubectl("-n", namespace, "delete", "pdb", NAME)
    await resync(operator)

    assert read(api, namespace, "pdb") != {}
    assert len(complaints(caplog)) == 1


@pytest.mark.parametrize("operator", [False], indirect=True)
async def test_switched_off_nothing_is_made_nor_looked_at(
    api: LocalCluster, namespace: str, operator: Reconciler, define, caplog: pytest.LogCaptureFixture
) -> None:
    define(DEFINITION)
    await resync(operator)

    assert read(api, namespace, "pdb") != {}
    assert read(api, namespace, "podmonitor") == {}
    assert complaints(caplog) == []
