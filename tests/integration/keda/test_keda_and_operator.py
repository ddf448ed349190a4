"""The real KEDA and the operator write the same objects, and never the same field."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import WRITES, AuditLog
from zerolayer_dev.testing.keda import USER
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_operator.api.names import FIELD_MANAGER

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.usefixtures("nodes")]

Make = Callable[..., Pool]
AT_REST_S = 25


@pytest.fixture(scope="module")
def busy(prometheus: Prometheus) -> Iterator[None]:
    """Fifteen requests at once, all the time."""
    registry = CollectorRegistry()
    Gauge("gateway_requests", "Requests at once.", registry=registry).set(15)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    prometheus.start({f"127.0.0.1:{server.server_port}": {}}, "200ms")
    yield
    server.shutdown()
    server.server_close()
    thread.join()


def read(pool: Pool, kind: str, name: str) -> dict[str, Any]:
    shown = pool.kubectl("-n", pool.namespace, "get", kind, name, "-o", "json", "--show-managed-fields")
    return json.loads(shown)


def size(pool: Pool) -> int:
    return sum(item["spec"]["replicas"] for item in pool.deployments().values())


def fields(owned: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all fields that a set of managed fields holds."""
    inner = {name: below for name, below in owned.items() if name != "."}
    if not inner:
        yield path
    for name, below in inner.items():
        yield from fields(below, f"{path}/{name}")


def owners(body: dict[str, Any]) -> dict[str, set[str]]:
    """Fields by who owns them."""
    found: dict[str, set[str]] = {}
    for entry in body["metadata"]["managedFields"]:
        found.setdefault(entry["manager"], set()).update(fields(entry["fieldsV1"]))
    return found


def writes(audit: AuditLog, users: tuple[str, ...], since: int) -> Counter[str]:
    """Writes of objects and sizes by some users; of statuses, of which each has its own, not."""
    return Counter(
        f"{call.permission} by {user.rpartition(':')[2]}"
        for user in users
        for call in audit.calls(user=user, since=since)
        if call.permission.verb in WRITES
        and call.permission.resource
        in {"scaledobjects", "horizontalpodautoscalers", "deployments", "deployments/scale"}
    )


@pytest.mark.promise("field-failures")
@pytest.mark.usefixtures("busy")
def test_keda_and_operator_fighting_over_one_field(
    make: Make, audit: AuditLog, account: Account, figures
) -> None:
    """KEDA and the operator own no field together, and a pool that is at rest gets no write of either.

    Two who size one target overwrote each other every few minutes, kedacore/keda#5288; so did an operator
    that applied its own number of replicas, gardener/gardener#1017.
    """
    pool = make(
        metric={"type": "PromQL", "target": 5, "query": "gateway_requests"},
        scaleDown={"mode": "Fixed", "fixedWindow": "60s"},
    )
    pool.wait(lambda: size(pool), lambda seen: seen == 3, what="3 workers", seconds=60)
    pool.wait_condition("Ready", "True")
    pool.change(autoscaling={"minReplicas": 4})
    pool.wait(lambda: size(pool), lambda seen: seen == 4, what="4 workers", seconds=60)
    pool.wait(lambda: pool.status.get("readyReplicas"), lambda seen: seen == 4, what="all ready", seconds=60)

    since, end, sizes = audit.mark(), time.monotonic() + AT_REST_S, set[int]()
    while time.monotonic() < end:
        sizes.add(size(pool))
        time.sleep(0.5)
    written = writes(audit, (USER, account.user), since)
    scaled = owners(read(pool, "scaledobject", pool.name))
    own, others = scaled.pop(FIELD_MANAGER), set[str]().union(*scaled.values())
    autoscaler = owners(read(pool, "hpa", f"keda-hpa-{pool.name}"))
    (deployment,) = pool.deployments()
    replicas = owners(read(pool, "deployment", f"{pool.name}-{deployment}"))
    figures(
        own_fields=len(own),
        keda_s=len(others),
        both=len(own & others),
        writes=written.total(),
        seconds=AT_REST_S,
    )
    assert own
    assert others
    assert own & others == set()
    assert FIELD_MANAGER not in autoscaler
    assert "/f:spec/f:replicas" not in replicas[FIELD_MANAGER]
    assert not written, written
    assert sizes == {4}
