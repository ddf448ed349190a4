"""Pools that only answer those who hold a key."""

import json

import anthropic
import pytest

from zerolayer_dev.testing.pools import DEMO_MODEL
from zerolayer_dev.testing.waiting import wait_for


def ask(url: str, key: str) -> str:
    """Returns the class of the answer: the message's type, or the SDK's error."""
    client = anthropic.Anthropic(
        base_url=url, api_key=key, max_retries=0, http_client=anthropic.DefaultHttpxClient(trust_env=False)
    )
    try:
        return client.messages.create(
            model=DEMO_MODEL, max_tokens=1, messages=[{"role": "user", "content": "Hi"}]
        ).type
    except anthropic.AuthenticationError:
        return "refused"
    finally:
        client.close()


def put_secret(kubectl, namespace: str, **keys: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "clients", "namespace": namespace},
        "stringData": keys,
    }
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(manifest))


@pytest.mark.promise("api-keys")
def test_only_clients_with_a_key_are_answered(pool, cluster, release, namespace: str) -> None:
    """A pool with an API key secret answers its keys only, and takes a new key without a restart."""
    guarded = pool("guarded", apiKeySecretRef={"name": "clients"})
    condition = guarded.wait_condition("Ready", "False", seconds=60)
    guarded.wait(
        lambda: [found for found in guarded.status.get("conditions", ()) if "clients" in found["message"]],
        bool,
        what="a condition that names the missing secret",
        seconds=60,
    )
    put_secret(cluster.kubectl, namespace, first="key-one")
    guarded.wait_ready(1)
    pods = {pod["metadata"]["uid"] for pod in guarded.pods()}

    assert condition["message"]
    assert ask(guarded.url, "key-one") == "message"
    assert ask(guarded.url, "key-two") == "refused"
    put_secret(cluster.kubectl, namespace, first="key-one", second="key-two")
    wait_for(
        lambda: ask(guarded.url, "key-two"),
        until=lambda seen: seen == "message",
        what="the new key",
        seconds=150,
    )
    assert {pod["metadata"]["uid"] for pod in guarded.pods()} == pods
    assert "key-one" not in release.logs()
