"""What becomes of an update whose record, evidence or Deployments somebody meddles with."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.update_pool import UpdatedPool

QUICK = {
    "strategy": "Canary",
    "soak": "8s",
    "maxSoak": "60s",
    "minSamples": 20,
    "blueRetention": "2s",
    "failedRetention": "2s",
}
EVIDENCE = '{"v":1,"t":"","n":1,"b":[1,5,[[],[]],[[],[]],0,0],"g":[1,5,[[],[]],[[],[]],0,0],"p":{}}'


def worker(value: str) -> dict[str, Any]:
    return {"device": "cpu", "env": [{"name": "A", "value": value}]}


@pytest.fixture
def edit(api: LocalCluster, namespace: str) -> Callable[[dict[str, Any]], None]:
    """Writes into the status of the update, past the operator."""

    def edit(update: dict[str, Any]) -> None:
        patch = json.dumps({"status": {"update": update}})
        api.kubectl(
            "-n", namespace, "patch", "zlp", "p", "--subresource=status", "--type=merge", f"--patch={patch}"
        )

    return edit


def test_record_that_a_hand_has_spoilt_holds_no_update_up(
    make: Callable[..., UpdatedPool],
    edit: Callable[[dict[str, Any]], None],
    api: LocalCluster,
    namespace: str,
) -> None:
    """Evidence, the soak's beginning and wishes amid it, all nonsense: the update comes to its good end."""
    pool = make(replicas=9, worker=worker("1"), update=QUICK)
    pool.wait_workers(9)
    pool.change(worker=worker("2"))
    green = pool.wait_step("Soak")["toRevision"]
    pool.annotate("promote", "true")
    edit({"evidence": EVIDENCE})
    edit({"soakStartedAt": "2150-01-01T00:00:00Z", "stepStartedAt": "2150-01-01T00:00:00Z"})
    pool.wait(
        lambda: pool.update, lambda seen: seen["soakStartedAt"] < "2150", what="a mended soak", seconds=20
    )
    edit({"soakStartedAt": None})

    entry = pool.wait_over()

    assert (entry["end"], entry["toRevision"]) == ("Promoted", green), entry
