"""What only the cluster can tell about a pool becomes a condition with a reason and a remedy."""

from typing import Any

import pytest

from zerolayer_dev.testing.pools import DEMO_MODEL, Pool
from zerolayer_dev.testing.release import Release


def source(**kind: Any) -> dict[str, Any]:
    return {"model": {"name": DEMO_MODEL, "source": kind}}


def worker(**fields: Any) -> dict[str, Any]:
    return {"worker": {"device": "cpu", **fields}}


# Name of the pool, its spec, and what its conditions must name.
BAD_POOLS = [
    ("no-claim", source(persistentVolumeClaim={"claimName": "missing-claim"}), "missing-claim"),
    ("no-secret", {"apiKeySecretRef": {"name": "missing-keys"}}, "missing-keys"),
    (
        "no-token",
        source(
            huggingFace={
                "repo": "org/model",
                "revision": "0123456789abcdef0123456789abcdef01234567",
                "tokenSecretRef": {"name": "missing-token", "key": "token"},
            }
        ),
        "missing-token",
    ),
    ("no-image", worker(image="zerolayer.dev/none:none", imagePullPolicy="Never"), "zerolayer.dev/none:none"),
    (
        "no-model-image",
        source(image={"reference": "zerolayer.dev/no-model:none"}),
        "zerolayer.dev/no-model:none",
    ),
    ("no-gpu", {"worker": {"device": "gpu"}}, "nvidia.com/gpu"),
    ("no-node", worker(nodeSelector={"zerolayer.dev/nowhere": "true"}), "node"),
    ("no-priority", worker(priorityClassName="missing-priority"), "missing-priority"),
    ("not-restricted", source(hostPath={"path": "/srv/model"}), "restricted"),
    ("no-builtin", source(builtin={"name": "missing-model"}), "missing-model"),
    ("too-long", worker(maxModelLen=1_000_000), "spec.worker.maxModelLen"),
]


def messages(pool: Pool) -> list[str]:
    """Returns the messages of conditions that say something is wrong."""
    return [
        f"{found['type']}={found['status']} {found['reason']}: {found['message']}"
        for found in pool.status.get("conditions", ())
        if (found["type"] == "Degraded") == (found["status"] == "True")
        and found["reason"]
        and found["message"]
    ]


@pytest.mark.promise("bad-pools-refused", "least-rbac")
def test_what_only_the_cluster_can_tell_becomes_a_condition(pool, release: Release, figures) -> None:
    """Pools that only the cluster can judge get a condition with reason and remedy, never a traceback."""
    pools = [(pool(name, **spec), said) for name, spec, said in BAD_POOLS]
    for bad, said in pools:
        bad.wait(
            lambda bad=bad: messages(bad),
            lambda seen, said=said: any(said in message for message in seen),
            what=f"a condition that names {said}",
            seconds=120,
        )
        assert bad.status["phase"] != "Ready"
        assert bad.status["readyReplicas"] == 0
        bad.delete(wait=False)

    figures(pools=len(pools))
    assert "Traceback" not in release.logs()
