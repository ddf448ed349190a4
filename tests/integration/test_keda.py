"""ScaledObjects on a real API server with KEDA's definitions, by the chart's rights; KEDA itself is away."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_operator import metrics
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

NAME = "p"
ADDRESS = "https://prometheus:9090"
TOKEN = {"bearerTokenSecretRef": {"name": "secret", "key": "token"}}
CERTIFICATES = {
    "tls": {
        "caSecretRef": {"name": "secret", "key": "ca"},
        "certificateSecretRef": {"name": "secret"},
    }
}
UTILIZATION = {"type": "Utilization"}
KEDA = {"provider": "KEDA", "metric": UTILIZATION}
SIZE = 4

ACCEPTED = {
    "CPU": {"provider": "KEDA"},
    "Utilization": KEDA,
    "Concurrency": {"provider": "KEDA", "metric": {"type": "Concurrency", "target": 6}},
    "TokenRate": {"provider": "KEDA", "metric": {"type": "TokenRate", "target": 2500}},
    "PromQL": {"provider": "KEDA", "metric": {"type": "PromQL", "target": 3, "query": 'sum(x{a="b"})'}},
    "by flatness": {**KEDA, "scaleDown": {"mode": "Flatness", "minWindow": "30s", "maxWindow": "10m"}},
    "to zero": {
        "provider": "KEDA",
        "scaleToZero": True,
        "metric": {"type": "PromQL", "target": 3, "query": "vector(0)"},
    },
    "token": {**KEDA, "prometheus": {"address": ADDRESS, **TOKEN}},
    "certificates": {
        **KEDA,
        "prometheus": CERTIFICATES,
        "scaleDown": {"mode": "Fixed", "fixedWindow": "2m"},
    },
    "all": {
        **KEDA,
        "prometheus": {**TOKEN, **CERTIFICATES},
        "scaleDown": {"mode": "Fixed", "fixedWindow": "2m"},
        "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}]},
    },
}


@pytest.fixture
async def operator(api: LocalCluster, namespace: str, client_of, by_hand) -> AsyncIterator[Reconciler]:
    account = Account(api, namespace, (namespace,), keda={"enabled": True})
    settings = Settings(
        worker_image="worker:1",
        pod_name="test",
        namespaces=(namespace,),
        keda=True,
        prometheus_addresses=(ADDRESS,),
    )
    yield by_hand(await client_of(account), settings)
    account.remove()


@pytest.fixture
def make(api: LocalCluster, namespace: str, apply_pool: Callable[..., None]) -> Callable[..., None]:
    api.kubectl("-n", namespace, "create", "secret", "generic", "secret", "--from-literal=token=t")

    def make(autoscaling: dict[str, Any] | None = None, **spec: Any) -> None:
        scaled = {"autoscaling": {"maxReplicas": 9, **autoscaling}} if autoscaling is not None else {}
        apply_pool(NAME, **scaled, **spec)

    return make


def read(api: LocalCluster, namespace: str, kind: str, name: str = NAME) -> dict[str, Any]:
    said = api.kubectl("-n", namespace, "get", kind, name, "-o", "json", "--ignore-not-found")
    return json.loads(said) if said.strip() else {}


def degraded(api: LocalCluster, namespace: str) -> str:
    """Why the pool is not as it should be; empty where it is."""
    conditions = read(api, namespace, "zlp")["status"]["conditions"]
    found = next(item for item in conditions if item["type"] == "Degraded")
    return found["reason"] if found["status"] == "True" else ""


def size(api: LocalCluster, namespace: str) -> int:
    (deployment,) = json.loads(api.kubectl("-n", namespace, "get", "deployments", "-o", "json"))["items"]
    return deployment["spec"]["replicas"]


def writes() -> float:
    """Writes of objects of autoscaling; the status follows what becomes of pods, too."""
    kinds = ("ScaledObject", "TriggerAuthentication", "HorizontalPodAutoscaler")
    return sum(
        metrics.API_WRITES.labels(kind=kind, verb=verb)._value.get()
        for kind in kinds
        for verb in ("apply", "delete")
    )


async def test_each_combination_is_taken_whole_and_costs_no_further_write(
    api: LocalCluster, namespace: str, operator: Reconciler, make, define
) -> None:
    define("keda")
    for what, autoscaling in ACCEPTED.items():
        make(autoscaling)
        before = writes()
        await operator.reconcile(namespace, NAME)
        settled = writes()
        await operator.reconcile(namespace, NAME)

        (trigger,) = read(api, namespace, "scaledobject")["spec"]["triggers"]
        assert before < settled == writes(), what
        assert ("authenticationRef" in trigger) is ("prometheus" in autoscaling), what
        assert bool(read(api, namespace, "triggerauthentication")) is ("prometheus" in autoscaling), what
    assert read(api, namespace, "hpa") == {}


async def test_definition_that_comes_later_ends_the_condition(
    api: LocalCluster, namespace: str, operator: Reconciler, make, define, start
) -> None:
    make(KEDA)
    await operator.reconcile(namespace, NAME)
    start(NAME)
    await operator.reconcile(namespace, NAME)
    assert degraded(api, namespace) == "KedaMissing"

    define("keda")
    await operator.reconcile(namespace, NAME)
    assert degraded(api, namespace) == ""
    scaled = read(api, namespace, "scaledobject")
    (owner,) = scaled["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ZeroLayerPool", NAME)


async def test_hands_are_corrected_and_what_is_not_the_operators_is_left(
    api: LocalCluster, namespace: str, operator: Reconciler, make, define
) -> None:
    define("keda")
    make(KEDA)
    await operator.reconcile(namespace, NAME)
    made = read(api, namespace, "scaledobject")["spec"]
    edit = json.dumps({"spec": {"maxReplicaCount": 50, "pollingInterval": 7}})
    api.kubectl("-n", namespace, "patch", "scaledobject", NAME, "--type=merge", f"--patch={edit}")

    await operator.reconcile(namespace, NAME)
    assert read(api, namespace, "scaledobject")["spec"] == {**made, "pollingInterval": 7}


async def test_size_is_kept_from_one_provider_to_the_other_and_back(
    api: LocalCluster, namespace: str, operator: Reconciler, make, define
) -> None:
    define("keda")
    seen: list[int] = []

    async def settle() -> None:
        for _ in range(3):
            await operator.reconcile(namespace, NAME)
            seen.append(size(api, namespace))
            assert not (read(api, namespace, "hpa") and read(api, namespace, "scaledobject"))

    make(replicas=SIZE)
    await settle()
    for autoscaling, kind in ((KEDA, "scaledobject"), ({}, "hpa"), (KEDA, "scaledobject")):
        make(autoscaling)
        await settle()
        assert read(api, namespace, kind) != {}
    make(replicas=SIZE)
    await settle()

    assert read(api, namespace, "scaledobject") == {}
    assert set(seen) == {SIZE}


async def test_own_autoscaler_comes_once_keda_has_let_go_and_keda_s_is_never_touched(
    api: LocalCluster, namespace: str, operator: Reconciler, make, define
) -> None:
    """As KEDA does it: a finalizer on the ScaledObject, and an autoscaler that bears its labels."""
    define("keda")
    make(KEDA)
    await operator.reconcile(namespace, NAME)
    scaled = read(api, namespace, "scaledobject")
    api.kubectl("apply", "--filename=-", stdin=json.dumps(as_keda_makes_it(scaled)))
    before = writes()
    finalize(api, namespace, ["finalizer.keda.sh"])
    try:
        make({})
        for _ in range(2):
            await operator.reconcile(namespace, NAME)
        assert read(api, namespace, "hpa") == {}
        assert "deletionTimestamp" in read(api, namespace, "scaledobject")["metadata"]
        assert writes() == before + 1, "the ScaledObject's deletion alone"
        assert "deletionTimestamp" not in read(api, namespace, "hpa", f"keda-hpa-{NAME}")["metadata"]
    finally:
        finalize(api, namespace, None)
    # As the garbage collector does, which may be first.
    api.kubectl("-n", namespace, "delete", "hpa", f"keda-hpa-{NAME}", "--ignore-not-found")
    await operator.reconcile(namespace, NAME)
    assert read(api, namespace, "hpa")["spec"]["maxReplicas"] == 9


def finalize(api: LocalCluster, namespace: str, finalizers: list[str] | None) -> None:
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    api.kubectl("-n", namespace, "patch", "scaledobject", NAME, "--type=merge", f"--patch={patch}")


def as_keda_makes_it(scaled: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = scaled["metadata"], scaled["spec"]
    owner = {key: scaled[key] for key in ("apiVersion", "kind")} | {"name": NAME, "uid": metadata["uid"]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": f"keda-hpa-{NAME}",
            "namespace": metadata["namespace"],
            "labels": metadata["labels"],
            "annotations": metadata["annotations"],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "scaleTargetRef": spec["scaleTargetRef"],
            "maxReplicas": spec["maxReplicaCount"],
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "s0-prometheus"},
                        "target": {"type": "AverageValue", "averageValue": "70"},
                    },
                }
            ],
        },
    }
