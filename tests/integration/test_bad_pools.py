"""Malformed pools are refused by the API server itself, with a message that names the field."""

import asyncio
import json
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.generate.crd import FILE_NAME
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import malformed
from zerolayer_dev.testing.pools import manifest

CRD = yaml.safe_load((repo_root() / "crds" / FILE_NAME).read_text(encoding="utf-8"))
SCHEMA = malformed.spec_schema(CRD)
AT_ONCE = 8
FEWEST = 50
INVALID = 400, 422


class Judge:
    """Asks the API server what it thinks of pools, without making any."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client = DynamicClient(client)
        self._path = f"/apis/zerolayer.dev/v1alpha1/namespaces/{namespace}/zerolayerpools"
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, spec: Any, name: str = "p") -> str:
        """What the API server objects to; empty where it accepts the pool."""
        body = {
            "apiVersion": "zerolayer.dev/v1alpha1",
            "kind": "ZeroLayerPool",
            "metadata": {"name": name},
            "spec": spec,
        }
        query = [("fieldValidation", "Strict"), ("dryRun", "All")]
        async with self._slots:
            try:
                await self._client.request("post", self._path, body=body, query_params=query)
            except ApiException as error:
                if error.status not in INVALID:
                    raise
                return str(json.loads(error.body)["message"])
        return ""


@pytest.fixture
def judge(client: ApiClient, namespace: str) -> Judge:
    return Judge(client, namespace)


@pytest.mark.promise("bad-pools-refused")
async def test_malformed_pools_are_refused_by_name_of_the_field(judge: Judge, figures) -> None:
    """Malformed pools, one for every limit of the schema, are refused with a message naming the field."""
    samples = list(malformed.malformed(SCHEMA))
    answers = await asyncio.gather(*(judge(sample.spec) for sample in samples))

    silent = [
        f"{sample.path} ({sample.how}): {answer or 'accepted'}"
        for sample, answer in zip(samples, answers, strict=True)
        if sample.path not in answer
    ]
    figures(
        malformed=len(samples),
        refused=sum(map(bool, answers)),
        by_rule=sum(sample.by_rule for sample in samples),
        named_the_field=len(samples) - len(silent),
    )
    assert silent == []
    assert len(samples) >= FEWEST


async def test_good_pools_are_accepted(judge: Judge) -> None:
    samples = list(malformed.good(SCHEMA))
    answers = await asyncio.gather(*(judge(sample.spec) for sample in samples))

    assert [
        f"{sample.path}: {answer}" for sample, answer in zip(samples, answers, strict=True) if answer
    ] == []


@pytest.mark.parametrize(
    ("worker", "field"),
    [
        ({"imagePullSecrets": [{"name": "Not A Name"}]}, "spec.worker.imagePullSecrets[0].name"),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "Not A Name", "key": "k"}}}]},
            "spec.worker.env[0].valueFrom.secretKeyRef.name",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "n", "key": "a/b"}}}]},
            "spec.worker.env[0].valueFrom.configMapKeyRef.key",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]},
            "spec.worker.env[0].valueFrom.secretKeyRef.name",
        ),
    ],
)
async def test_what_can_be_no_object_s_name_is_refused(judge: Judge, worker: Any, field: str) -> None:
    answer = await judge({**malformed.MINIMAL, "worker": {"device": "cpu", **worker}})

    assert field in answer


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("p" * 40, ""),
        ("p" * 41, "metadata.name must have at most 40 characters"),
        ("1st", "metadata.name must be a DNS-1035 label"),
        ("a.b", "metadata.name must be a DNS-1035 label"),
    ],
)
async def test_names_are_limited(judge: Judge, name: str, said: str) -> None:
    answer = await judge(malformed.MINIMAL, name)

    assert said in answer
    assert bool(answer) == bool(said)


def test_kind_of_source_cannot_change(api: LocalCluster, namespace: str) -> None:
    answer = changed(api, namespace, {"model": {"source": {"builtin": None, "hostPath": {"path": "/m"}}}})

    assert "spec.model.source cannot change its kind" in answer


def test_source_of_the_same_kind_can_change(api: LocalCluster, namespace: str) -> None:
    assert changed(api, namespace, {"model": {"source": {"builtin": {"name": "other"}}}}) == ""


def test_autoscaled_pool_cannot_be_scaled_and_the_message_says_what_to_do(
    api: LocalCluster, namespace: str
) -> None:
    made(api, namespace, {**malformed.MINIMAL, "autoscaling": {"maxReplicas": 3}})

    answer = refused(api, "-n", namespace, "scale", "zlp", "p", "--replicas=2")

    assert "autoscaling.minReplicas" in answer


def test_fixed_pool_can_be_scaled(api: LocalCluster, namespace: str) -> None:
    made(api, namespace, malformed.MINIMAL)
    api.kubectl("-n", namespace, "scale", "zlp", "p", "--replicas=2")

    assert api.kubectl("-n", namespace, "get", "zlp", "p", "-o", "jsonpath={.spec.replicas}") == "2"


@pytest.mark.parametrize(
    "field",
    [
        "",
        ".model.source",
        ".worker",
        ".autoscaling.metric",
        ".autoscaling.prometheus.tls",
        ".autoscaling.scaleDown",
        ".warmup.settleRatio",
    ],
)
def test_kubectl_explains_fields(api: LocalCluster, field: str) -> None:
    answer = api.kubectl("explain", f"zlp.spec{field}")

    assert "<no description>" not in answer
    assert "DESCRIPTION:" in answer


def test_kubectl_get_shows_columns(api: LocalCluster, namespace: str) -> None:
    made(api, namespace, malformed.MINIMAL)

    short = api.kubectl("-n", namespace, "get", "zlp")
    wide = api.kubectl("-n", namespace, "get", "zlp", "-o", "wide")

    columns = ["NAME", "READY", "PHASE", "ANCHOR", "CANARY", "UTIL", "WINDOW", "AGE"]
    assert short.split()[: len(columns)] == columns
    assert wide.split()[len(columns) :][:2] == ["MODEL", "IMAGE"]


def made(api: LocalCluster, namespace: str, spec: Any) -> None:
    api.kubectl("create", "--filename=-", stdin=json.dumps(manifest("p", namespace, spec)))


def changed(api: LocalCluster, namespace: str, change: Any) -> str:
    """What kubectl says about a change of a pool; empty where it is accepted."""
    made(api, namespace, malformed.MINIMAL)
    patch = f"--patch={json.dumps({'spec': change})}"
    return refused(api, "-n", namespace, "patch", "zlp", "p", "--type=merge", patch)


def refused(api: LocalCluster, *arguments: str) -> str:
    try:
        api.kubectl(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever the cluster's kubectl raises carries the message
        return str(error)
    return ""
