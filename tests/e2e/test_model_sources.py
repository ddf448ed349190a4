"""Weights from wherever a pool says: a folder of the node, a volume claim, an image."""

import json
from typing import Any

import httpx
import pytest

from zerolayer_dev.images import specs
from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.testing import hub
from zerolayer_dev.testing.pools import DEMO_MODEL, Pool, cpu_pool

pytestmark = pytest.mark.promise("model-sources")


def answer(pool: Pool) -> tuple[str, str]:
    """Returns a deterministic answer and the digest of the weights that gave it."""
    body = {"model": DEMO_MODEL, "max_tokens": 8, "messages": [{"role": "user", "content": "Name a river."}]}
    headers = {"anthropic-sampling-intent": "deterministic"}
    with httpx.Client(trust_env=False, timeout=60) as client:
        message = client.post(f"{pool.url}/v1/messages", json=body, headers=headers).raise_for_status().json()
        (pod,) = pool.pods()
        version = client.get(f"http://{pod['status']['podIP']}:8081/version").json()
    return message["content"][0]["text"], version["model"]["digest"]


def bind_volume(kubectl: Any, namespace: str, path: str) -> None:
    """Makes a claim `weights` that is bound to a folder of the node."""
    access = {"accessModes": ["ReadOnlyMany"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace}-weights"},
        "spec": access
        | {"capacity": {"storage": "1Gi"}, "hostPath": {"path": path}, "storageClassName": "none"}
        | {"claimRef": {"name": "weights", "namespace": namespace}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights", "namespace": namespace},
        "spec": access
        | {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "none"}
        | {"volumeName": volume["metadata"]["name"]},
    }
    kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [volume, claim]})
    )


@pytest.mark.parametrize("kind", ["hostPath", "persistentVolumeClaim", "image"])
def test_weights_from_a_source(
    kind: str, pool, cluster, serving_pool: Pool, open_namespace: str, namespace: str, figures
) -> None:
    """Weights from a host path, a volume claim or an image give the same answer as built-in ones."""
    within = open_namespace if kind == "hostPath" else namespace
    source = {
        "hostPath": {"path": str(model_dir())},
        "persistentVolumeClaim": {"claimName": "weights", "path": model_dir().name},
        "image": {"reference": specs.reference("modelonly"), "path": "model"},
    }[kind]
    if kind == "persistentVolumeClaim":
        bind_volume(cluster.kubectl, within, str(model_dir().parent))
    sourced = pool("sourced", within=within, model={"name": DEMO_MODEL, "source": {kind: source}})
    sourced.wait_ready(1)

    text, digest = answer(sourced)
    figures(source=kind, digest=digest[:15])
    assert (text, digest) == answer(serving_pool)


def test_weights_from_a_hub(pool, cluster, serving_pool: Pool, namespace: str, figures) -> None:
    """Weights fetched from a model hub by an init container give the same answer as built-in ones."""
    repository = hub.Repository("org/smollm2", model_dir(), token="open sesame")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hub", "namespace": namespace},
        "stringData": {"token": repository.token},
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(secret))
    source = {
        "repo": repository.name,
        "revision": hub.COMMIT,
        "tokenSecretRef": {"name": "hub", "key": "token"},
    }
    usual = cpu_pool("fetched", namespace)["spec"]["worker"]
    with hub.serve(repository, str(cluster.addresses.host)) as endpoint:
        fetched = pool(
            "fetched",
            model={"name": DEMO_MODEL, "source": {"huggingFace": source}},
            worker={**usual, "env": [{"name": "HF_ENDPOINT", "value": endpoint}]},
        )
        fetched.wait_ready(1)

    text, digest = answer(fetched)
    figures(source="huggingFace", digest=digest[:15])
    assert (text, digest) == answer(serving_pool)
