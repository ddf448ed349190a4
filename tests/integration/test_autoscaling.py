"""Autoscaled pools on a real API server: what it takes, and what it makes of the autoscaler."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_operator import metrics
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

NAME = "p"
GPU = {"worker": {"device": "gpu"}}
TYPES = {
    "CPU": {},
    "Utilization": {"type": "Utilization"},
    "Concurrency": {"type": "Concurrency", "target": 1500},
    "TokenRate": {"type": "TokenRate", "target": 1_000_000_000},
    "PromQL": {"type": "PromQL", "target": 1, "query": 'sum(x{a="b"}) or vector(0)'},
}


@pytest.fixture
def make(apply_pool: Callable[..., None]) -> Callable[..., None]:
    def make(autoscaling: dict[str, Any], **spec: Any) -> None:
        apply_pool(NAME, autoscaling={"maxReplicas": 3, **autoscaling}, **spec)

    return make


@pytest.fixture
def operator(client: ApiClient, by_hand) -> Reconciler:
    return by_hand(client, Settings(worker_image="worker:1", pod_name="test"))


def read(api: LocalCluster, namespace: str, kind: str) -> dict[str, Any]:
    said = api.kubectl("-n", namespace, "get", kind, NAME, "-o", "json", "--ignore-not-found")
    return json.loads(said) if said.strip() else {}


def degraded(api: LocalCluster, namespace: str) -> dict[str, Any]:
    conditions = read(api, namespace, "zlp")["status"]["conditions"]
    return next(item for item in conditions if item["type"] == "Degraded")


def writes() -> float:
    """Writes of the autoscaler; the status follows what becomes of pods, too."""
    return metrics.API_WRITES.labels(kind="HorizontalPodAutoscaler", verb="apply")._value.get()


async def test_autoscaler_of_each_type_is_taken_and_costs_no_further_write(
    api: LocalCluster, namespace: str, operator: Reconciler, make
) -> None:
    for what, metric in TYPES.items():
        make({"metric": metric})
        before = writes()
        await operator.reconcile(namespace, NAME)
        settled = writes()
        await operator.reconcile(namespace, NAME)

        (made,) = read(api, namespace, "hpa")["spec"]["metrics"]
        assert before < settled == writes(), what
        assert made["type"] == ("External" if metric else "ContainerResource"), what


async def test_cluster_without_external_metrics_is_told(
    api: LocalCluster, namespace: str, operator: Reconciler, make, start
) -> None:
    make({"metric": TYPES["Utilization"]}, **GPU)
    await operator.reconcile(namespace, NAME)
    start(NAME)
    await operator.reconcile(namespace, NAME)
    assert degraded(api, namespace)["reason"] == "ExternalMetricsMissing"

    make({"metric": TYPES["CPU"]}, worker={"device": "cpu"})
    await operator.reconcile(namespace, NAME)
    assert degraded(api, namespace)["status"] == "False"
    assert "zerolayer.dev/metric-query" not in read(api, namespace, "hpa")["metadata"]["annotations"]
