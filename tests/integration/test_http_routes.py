"""HTTPRoutes of pools: with the chart's rights, the real Gateway API, and what a gateway says of them."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_operator import metrics
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

pytestmark = pytest.mark.usefixtures("gateway_api")

NAME = "p"
PARENT = {"name": "gate", "namespace": "gateways"}
ROUTING = {"gateway": {"parentRefs": [PARENT], "hostnames": ["chat.example.org"]}}


@pytest.fixture
async def operator(
    api: LocalCluster,
    namespace: str,
    client_of: Callable[[Account], Any],
    apply_pool: Callable[..., None],
    by_hand: Callable[..., Reconciler],
    request: pytest.FixtureRequest,
) -> AsyncIterator[Callable[..., Any]]:
    """Looks at a pool with routing, with the switch on, or off for a test that asks for it."""
    on: bool = getattr(request, "param", True)
    account = Account(api, namespace, (namespace,), gateway={"enabled": on})
    settings = Settings(worker_image="worker:1", pod_name="test", namespaces=(namespace,), gateway=on)
    apply_pool(NAME, replicas=0, routing=ROUTING)
    reconciler = by_hand(await client_of(account), settings)

    async def look() -> None:
        await reconciler.reconcile(namespace, NAME)

    yield look
    account.remove()


@pytest.fixture
def read(api: LocalCluster, namespace: str) -> Callable[..., dict[str, Any]]:
    def read(kind: str, name: str = NAME) -> dict[str, Any]:
        said = api.kubectl("-n", namespace, "get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(said) if said.strip() else {}

    return read


@pytest.fixture
def services(api: LocalCluster, namespace: str) -> Callable[[], set[str]]:
    return lambda: set(api.kubectl("-n", namespace, "get", "services", "-o", "name").split())


def degraded(pool: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in pool["status"]["conditions"] if item["type"] == "Degraded")


def writes(kind: str) -> float:
    return metrics.API_WRITES.labels(kind=kind, verb="apply")._value.get()


def own_service(pool: dict[str, Any]) -> str:
    return f"{NAME}-{pool['status']['servingRevision']}"


async def test_route_leads_to_the_service_of_the_serving_revision(operator, read, services) -> None:
    await operator()
    await operator()
    route, pool = read("httproute"), read("zlp")

    (owner,) = route["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("ZeroLayerPool", pool["metadata"]["uid"])
    assert route["spec"]["hostnames"] == ["chat.example.org"]
    assert [{key: item[key] for key in PARENT} for item in route["spec"]["parentRefs"]] == [PARENT]
    (rule,) = route["spec"]["rules"]
    assert rule["timeouts"] == {"request": "0s"}
    (backend,) = rule["backendRefs"]
    assert backend["name"] == own_service(pool)
    assert f"service/{backend['name']}" in services()
    assert degraded(pool)["status"] == "False"


async def test_steady_route_costs_no_write_and_hands_are_corrected(
    api: LocalCluster, namespace: str, operator, read
) -> None:
    for _ in range(2):
        await operator()
    made, seen = read("httproute")["spec"], (writes("HTTPRoute"), writes("Service"))
    assert min(seen) > 0
    for _ in range(3):
        await operator()
    assert (writes("HTTPRoute"), writes("Service")) == seen

    edit = json.dumps([{"op": "replace", "path": "/spec/rules/0/backendRefs/0/weight", "value": 7}])
    api.kubectl("-n", namespace, "patch", "httproute", NAME, "--type=json", f"--patch={edit}")
    await operator()
    assert read("httproute")["spec"] == made

    api.kubectl("-n", namespace, "delete", "httproute", NAME)
    await operator()
    assert read("httproute")["spec"] == made


async def test_route_and_services_of_revisions_go_with_the_routing(
    apply_pool, operator, read, services
) -> None:
    await operator()
    own = own_service(read("zlp"))
    assert f"service/{own}" in services()
    apply_pool(NAME, replicas=0)
    await operator()
    assert read("httproute") == {}
    await operator()

    assert services() == {f"service/{NAME}", f"service/{NAME}-metrics"}


async def test_what_a_gateway_says_against_a_route_is_told(
    api: LocalCluster, namespace: str, operator, read
) -> None:
    await operator()
    generation = read("httproute")["metadata"]["generation"]
    since = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "NotAllowedByListeners",
        "message": "only of its own namespace",
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
    said = {"controllerName": "example.org/gateway", "parentRef": PARENT, "conditions": [condition]}
    patch = json.dumps({"status": {"parents": [said]}})
    api.kubectl(
        *("-n", namespace, "patch", "httproute", NAME, "--subresource=status", "--type=merge"),
        f"--patch={patch}",
    )
    await operator()
    found = degraded(read("zlp"))

    assert found["reason"] == "RouteNotAccepted"
    assert "Gateway gateways/gate does not take HTTPRoute p" in found["message"]
    assert "NotAllowedByListeners: only of its own namespace" in found["message"]


@pytest.mark.parametrize("operator", [False], indirect=True)
async def test_switched_off_nothing_is_made_nor_looked_at(operator, read) -> None:
    await operator()

    assert degraded(read("zlp"))["reason"] == "GatewayNotEnabled"
    assert read("pdb") != {}
    assert read("httproute") == {}
