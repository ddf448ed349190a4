"""Pools that the real KEDA sizes: what it makes of our ScaledObjects, and whose its autoscalers are.

Prometheus is a real one, too. Nodes are not: a pod is said to be ready as soon as it is there.
"""

import math
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.keda import USER, Keda
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.prometheus import Prometheus

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.usefixtures("nodes")]

Make = Callable[..., Pool]
NAME = "p"
HPA, SCALED = "horizontalpodautoscalers", "scaledobjects"


@pytest.fixture(scope="module")
def gateway(prometheus: Prometheus) -> Iterator[Gauge]:
    """Requests at a gateway, which there are without any worker; Prometheus knows how many."""
    registry = CollectorRegistry()
    gauge = Gauge("gateway_requests", "Requests at once.", registry=registry)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    prometheus.start({f"127.0.0.1:{server.server_port}": {}}, "200ms")
    yield gauge
    server.shutdown()
    server.server_close()
    thread.join()


def asks_for(target: int, query: str = "gateway_requests") -> dict[str, Any]:
    return {"type": "PromQL", "target": target, "query": query}


def keda_s(pool: Pool) -> dict[str, Any]:
    """The spec of the autoscaler that KEDA has made; empty where there is none."""
    return pool.read(HPA, f"keda-hpa-{pool.name}").get("spec", {})


def autoscalers(pool: Pool) -> set[str]:
    names = pool.kubectl("-n", pool.namespace, "get", HPA, "-o", "jsonpath={.items[*].metadata.name}")
    return set(names.split())


def size(pool: Pool) -> int:
    return sum(item["spec"]["replicas"] for item in pool.deployments().values())


def wait_size(pool: Pool, wanted: int, seconds: float = 60) -> None:
    pool.wait(lambda: size(pool), lambda seen: seen == wanted, what=f"{wanted} workers", seconds=seconds)


def lives(audit: AuditLog, namespace: str, since: int) -> list[tuple[str, float, float]]:
    """Autoscalers by name, with when their making was asked for and when their deletion was through."""
    made: dict[str, float] = {}
    found: list[tuple[str, float, float]] = []
    for call in audit.calls(since=since):
        if (call.namespace, call.permission.resource) != (namespace, HPA) or call.code >= 300:
            continue
        if call.code == HTTPStatus.CREATED:
            made[call.name] = call.at.timestamp()
        elif call.permission.verb == "delete" and call.name in made:
            found.append((call.name, made.pop(call.name), call.done_at.timestamp()))
    return sorted([*found, *((name, at, math.inf) for name, at in made.items())], key=lambda life: life[1])


def test_what_a_pool_asks_for_arrives_and_only_keda_writes_its_autoscaler(
    make: Make, gateway: Gauge, audit: AuditLog, account: Account
) -> None:
    gateway.set(15)
    since = audit.mark()
    up = {"stabilizationWindowSeconds": 5, "policies": [{"type": "Pods", "value": 3, "periodSeconds": 15}]}
    pool = make(
        minReplicas=2,
        metric=asks_for(5),
        scaleDown={"mode": "Fixed", "fixedWindow": "240s"},
        scaleUp=up,
    )
    wait_size(pool, 3)
    spec = keda_s(pool)
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 9)
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 240
    assert up.items() <= spec["behavior"]["scaleUp"].items()
    (metric,) = spec["metrics"]
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "5"}

    flat = {"mode": "Flatness", "fixedWindow": None, "minWindow": "60s", "maxWindow": "200s"}
    pool.change(autoscaling={"minReplicas": 4, "maxReplicas": 6, "scaleDown": flat})
    wait_size(pool, 4)
    down = keda_s(pool)["behavior"]["scaleDown"]
    assert down["stabilizationWindowSeconds"] == 200
    assert down["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 15}]
    assert keda_s(pool)["maxReplicas"] == 6
    assert pool.read(SCALED, NAME)["status"]["hpaName"] == f"keda-hpa-{NAME}"

    assert audit.writers(HPA, f"keda-hpa-{NAME}", since=since) == {USER}
    assert audit.writers(SCALED, NAME, since=since) == {USER, account.user}


def test_metric_of_each_type_is_taken_by_keda(make: Make, gateway: Gauge) -> None:
    for metric, expected in (
        ({"type": "Utilization"}, "70"),
        ({"type": "Concurrency", "target": 6}, "6"),
        ({"type": "TokenRate", "target": 2500}, "2500"),
        (asks_for(7, 'sum(rate(gateway_requests{a!="b"}[1m])) or vector(0)'), "7"),
    ):
        pool = make(metric=metric)

        def target(pool: Pool = pool) -> str:
            (metric,) = keda_s(pool).get("metrics", [{}])
            return metric.get("external", {}).get("target", {}).get("averageValue", "")

        pool.wait(target, expected.__eq__, what=f"{metric} in KEDA's", seconds=60)

    pool = make(metric={"type": "CPU", "target": 60})

    def kind() -> dict[str, Any]:
        return keda_s(pool).get("metrics", [{}])[0]

    found = pool.wait(kind, lambda seen: "containerResource" in seen, what="CPU use", seconds=60)
    assert found["containerResource"]["target"] == {"type": "Utilization", "averageUtilization": 60}


def test_change_of_the_provider_keeps_the_size_and_never_has_two_autoscalers(
    make: Make, gateway: Gauge, audit: AuditLog
) -> None:
    gateway.set(20)
    since = audit.mark()
    pool = make(metric=asks_for(5))
    wait_size(pool, 4)
    sizes: set[int] = set()

    def only(name: str) -> bool:
        sizes.add(size(pool))
        return autoscalers(pool) == {name} and autoscalers(pool) == {name}

    for provider, name in (("HPA", NAME), ("KEDA", f"keda-hpa-{NAME}"), ("HPA", NAME)):
        pool.change(autoscaling={"provider": provider})
        pool.wait(lambda name=name: only(name), bool, what=f"{name} alone", seconds=60)
    assert pool.read(SCALED, NAME) == {}
    assert sizes == {4}

    found = lives(audit, pool.namespace, since)
    assert [name for name, _, _ in found] == [f"keda-hpa-{NAME}", NAME, f"keda-hpa-{NAME}", NAME]
    assert all(end <= begin for (_, _, end), (_, begin, _) in pairwise(found)), found


def test_pool_sleeps_while_nobody_asks_and_wakes_by_a_series_that_needs_no_worker(
    make: Make, gateway: Gauge, figures
) -> None:
    gateway.set(10)
    pool = make(
        minReplicas=2,
        scaleToZero=True,
        metric=asks_for(5),
        scaleDown={"mode": "Fixed", "fixedWindow": "20s"},
    )
    wait_size(pool, 2)
    pool.wait_condition("Ready", "True")
    gateway.set(0)
    began = time.monotonic()
    wait_size(pool, 0, seconds=120)
    slept = time.monotonic()
    pool.wait_condition("Ready", "True", reason="ScaledToZero")

    gateway.set(30)
    rang = time.monotonic()
    pool.wait(lambda: size(pool), lambda seen: seen >= 2, what="it to wake", seconds=60)
    woke = time.monotonic()
    wait_size(pool, 6)
    pool.wait_condition("Ready", "True", reason="WorkersReady")
    figures(seconds_to_sleep=slept - began, seconds_to_wake=woke - rang)
    assert slept - began > 20


def test_prometheus_that_hangs_takes_no_worker(make: Make, gateway: Gauge, prometheus: Prometheus) -> None:
    gateway.set(30)
    pool = make(metric=asks_for(5), scaleDown={"mode": "Fixed", "fixedWindow": "0s"})
    wait_size(pool, 6)

    def active() -> dict[str, Any]:
        conditions = pool.read(HPA, f"keda-hpa-{NAME}")["status"]["conditions"]
        return next(item for item in conditions if item["type"] == "ScalingActive")

    prometheus.freeze()
    try:
        gateway.set(5)
        pool.wait(active, lambda seen: seen["status"] == "False", what="KEDA's to say so", seconds=90)
        assert size(pool) == 6
    finally:
        prometheus.thaw()
    wait_size(pool, 1, seconds=90)


def test_scaled_object_that_a_stopped_keda_holds_is_told_and_goes_when_it_is_back(
    make: Make, gateway: Gauge, keda: Keda
) -> None:
    gateway.set(10)
    pool = make(metric=asks_for(5))
    wait_size(pool, 2)
    keda.stop()
    try:
        pool.change(autoscaling={"provider": "HPA"})
        told = pool.wait_condition("Degraded", "True", reason="ScaledObjectHeld", seconds=180)
        assert "start KEDA again" in told["message"]
        assert NAME not in autoscalers(pool)
        assert size(pool) == 2
    finally:
        keda.start()
    pool.wait(lambda: autoscalers(pool), lambda seen: seen == {NAME}, what="its own alone", seconds=60)
    pool.wait_condition("Degraded", "False")
    assert size(pool) == 2
