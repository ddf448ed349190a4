"""A golden set judges a canary that nobody else may ask: one worker beside one, without a gateway."""

import json
from pathlib import Path

import pytest

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing import bundles
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = pytest.mark.promise("update-without-gateway")

UPDATE = {
    "soak": "20s",
    "maxSoak": "10m",
    "blueRetention": "5s",
    "golden": {"configMap": {"name": "golden"}, "minHitRate": 100},
}
QUESTIONS = (
    {
        "id": "capital",
        "prompt": "What is the capital of France?",
        "expect": {"contains": ["Paris"]},
        "change": True,
    },
    {"id": "river", "prompt": "Name a river in Germany.", "change": False},
)


def test_golden_set_judges(pool, cluster: Cluster, api, namespace: str, tmp_path: Path, figures) -> None:
    """The same knowledge under a new version passes its golden set, with no request of a user."""
    file = tmp_path / "bundle.safetensors"
    first, second = (bundles.noisy_bundle(tmp_path / version, version) for version in ("v1", "v2"))
    for name in ("v1", "v2"):
        body = bundles.config_map(name, namespace, tmp_path / name)
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    file.write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")
    cluster.kubectl("-n", namespace, "create", "configmap", "golden", f"--from-file=golden.jsonl={file}")
    made = pool("golden", anchor=bundles.anchor_spec(first, "v1"), update=UPDATE)
    made.wait_ready(1)
    changing = UpdatedPool(api, cluster.kubectl, namespace, "golden")

    changing.change(anchor=bundles.anchor_spec(second, "v2"))
    soaking = changing.wait_step("Soak", seconds=240)
    entry = changing.wait_over(seconds=400)

    checks = {item["name"]: item for item in soaking.get("checks", ())}
    kept = [f"configmap/golden-{entry['toRevision']}-anchor"]

    def left() -> list[str]:
        kinds = "jobs,configmaps,networkpolicies"
        names = cluster.kubectl("-n", namespace, "get", kinds, "-o", "name").split()
        return [name for name in names if name.startswith("job") or name.endswith(("-golden", "-anchor"))]

    figures(
        end=entry["end"],
        reason=entry["reason"],
        share=soaking["share"],
        weight=soaking["weight"],
        seconds=entry["durationSeconds"],
    )
    assert entry["end"] == "Promoted", (entry, checks)
    assert soaking["weight"] == 0
    changing.wait(left, lambda seen: seen == kept, what="nothing of the golden set, and one copy", seconds=60)
