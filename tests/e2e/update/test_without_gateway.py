"""An anchor is replaced on a real node, without a gateway."""

import json
from pathlib import Path

import pytest

from zerolayer_dev.testing import bundles
from zerolayer_dev.testing.load import Load
from zerolayer_dev.testing.pools import DEMO_MODEL

pytestmark = pytest.mark.promise("update-without-gateway")

UPDATE = {"canaryWeight": 30, "soak": "60s", "maxSoak": "10m", "minSamples": 20, "blueRetention": "10s"}


def test_anchor_is_replaced_under_load(pool, cluster, namespace: str, tmp_path: Path, figures) -> None:
    """Two workers, one for each revision, share the requests; the better one has them all in the end."""
    file = tmp_path / "bundle.safetensors"
    bundle = bundles.noisy_bundle(file, "v1")
    body = bundles.config_map("facts-v1", namespace, file)
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    changing = pool("changing", update=UPDATE)
    changing.wait_ready(1)
    blue = changing.status["servingRevision"]

    with Load(changing.url, model=DEMO_MODEL, max_tokens=4, intent="deterministic") as load:
        load.wait_for_more(4, seconds=120)
        changing.change(anchor=bundles.anchor_spec(bundle, "facts-v1"))
        soaking = changing.wait(
            lambda: changing.status.get("update", {}),
            lambda update: update.get("step") == "Soak",
            what="a canary",
            seconds=240,
        )
        cluster.kubectl("-n", namespace, "delete", "configmap", "facts-v1")
        over = changing.wait(
            lambda: changing.status, lambda status: "history" in status, what="the end", seconds=600
        )
        load.wait_for_more(4, seconds=120)
    figures(
        requests=len(load.attempts),
        failed=len(load.failures),
        share=soaking["share"],
        samples=over["history"][0]["samples"],
        seconds=over["history"][0]["durationSeconds"],
    )

    assert load.failures == []
    assert over["history"][0]["end"] == "Promoted", over["history"]
    assert over["servingRevision"] != blue
    assert over["anchor"]["active"]["version"] == "v1"
    assert soaking["share"] == 50
