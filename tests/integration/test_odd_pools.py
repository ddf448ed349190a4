"""Pools that are valid and odd, on a real API server: what they name, what they ask for, who else writes."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.malformed import MINIMAL
from zerolayer_operator import metrics
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

NAME = "odd"
TEXTS = {
    "emoji": "\U0001f600",
    "accent": "\u00e9\u00fc",
    "lines": "a\u2028b\u2029c\u0085d\ne\tf",
    "controls": "a\x1bb\x7fc\x9fd",
    "edges": "\ufeff \ufffd \uffff \U0010ffff",
    "escapes": '\\ud83d\\ude00 \\ " {{x}} $(HOME)',
}


@pytest.fixture
def reconciler(client: ApiClient, by_hand) -> Reconciler:
    return by_hand(client, Settings(worker_image="worker:1", pod_name="test"))


@pytest.fixture
def make(apply_pool: Callable[..., None]) -> Callable[..., None]:
    def make(**worker: Any) -> None:
        apply_pool(NAME, worker={**MINIMAL.get("worker", {}), **worker})

    return make


def conditions(api: LocalCluster, namespace: str) -> dict[str, dict[str, Any]]:
    found = json.loads(api.kubectl("-n", namespace, "get", "zlp", NAME, "-o", "json"))
    return {item["type"]: item for item in found["status"]["conditions"]}


def applied(kind: str) -> float:
    """Server-side applies of a kind so far; a pool's status changes with what the scheduler says of pods."""
    return metrics.API_WRITES.labels(kind=kind, verb="apply")._value.get()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_any_text_reaches_the_pods_as_it_is(
    api: LocalCluster, namespace: str, reconciler: Reconciler, make, text: str
) -> None:
    make(env=[{"name": "SAID", "value": text}], podAnnotations={"example.com/said": text})
    await reconciler.reconcile(namespace, NAME)

    (deployment,) = json.loads(api.kubectl("-n", namespace, "get", "deploy", "-o", "json"))["items"]
    template = deployment["spec"]["template"]
    said = {item["name"]: item.get("value") for item in template["spec"]["containers"][0]["env"]}
    assert said["SAID"] == text
    assert template["metadata"]["annotations"]["example.com/said"] == text
    await reconciler.reconcile(namespace, NAME)
    before = applied("Deployment")
    await reconciler.reconcile(namespace, NAME)
    assert applied("Deployment") == before


@pytest.mark.parametrize(
    "requests",
    [{"cpu": "0.0005"}, {"memory": "1.23456Gi"}, {"memory": "1.5m"}, {"cpu": "1.0", "memory": "1e9"}],
)
async def test_quantities_that_the_api_server_rounds_cost_no_writes(
    namespace: str, reconciler: Reconciler, make, requests: dict[str, str]
) -> None:
    make(resources={"requests": requests})
    for _ in range(2):
        await reconciler.reconcile(namespace, NAME)

    before = applied("Deployment")
    await reconciler.reconcile(namespace, NAME)
    assert applied("Deployment") == before


async def test_condition_of_somebody_else_stays_and_costs_no_writes(
    api: LocalCluster, namespace: str, reconciler: Reconciler, make, start
) -> None:
    make()
    await reconciler.reconcile(namespace, NAME)
    start(NAME)
    for _ in range(2):
        await reconciler.reconcile(namespace, NAME)
    foreign = {
        "type": "Foo", "status": "True", "reason": "Bar", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    operation = [{"op": "add", "path": "/status/conditions/-", "value": foreign}]
    api.kubectl(
        "-n", namespace, "patch", "zlp", NAME, "--subresource=status", "--type=json",
        f"--patch={json.dumps(operation)}",
    )  # fmt: skip

    before = applied("ZeroLayerPool")
    for _ in range(3):
        await reconciler.reconcile(namespace, NAME)
    assert applied("ZeroLayerPool") == before
    assert "Foo" in conditions(api, namespace)


async def test_webhook_that_does_not_answer_is_told(
    api: LocalCluster, namespace: str, reconciler: Reconciler, make
) -> None:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["deployments"],
    }
    guard = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"guard-{namespace}"},
        "webhooks": [
            {
                "name": "guard.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 1,
            }
        ],
    }
    make()
    api.kubectl("create", "--filename=-", stdin=json.dumps(guard))
    try:
        await reconciler.reconcile(namespace, NAME)
        degraded = conditions(api, namespace)["Degraded"]
    finally:
        api.kubectl("delete", "validatingwebhookconfiguration", guard["metadata"]["name"])

    assert (degraded["status"], degraded["reason"]) == ("True", "WebhookFails")
    assert "guard.example.com" in degraded["message"]
    await reconciler.reconcile(namespace, NAME)
    assert conditions(api, namespace)["Degraded"]["reason"] != "WebhookFails"
