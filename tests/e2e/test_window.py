"""The window follows the load of real workers; tests/integration/scaling has all that may happen to it."""

import json
import time
from itertools import pairwise

import pytest

from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import DEMO_MODEL

STEPS = [180, 120, 60]
AUTOSCALING = {
    "minReplicas": 1,
    "maxReplicas": 2,
    "metric": {"type": "CPU", "target": 100},
    "scaleDown": {"minWindow": f"{STEPS[-1]}s", "maxWindow": f"{STEPS[0]}s"},
}


@pytest.mark.long
@pytest.mark.promise("window-follows-load")
def test_a_steady_load_of_real_workers_narrows_the_window(pool, figures) -> None:
    """Clients that ask without a pause narrow the window of real workers; status, Events and HPA agree."""
    steady = pool("steady", autoscaling=AUTOSCALING)
    steady.wait_ready(1)
    # Each has one request under way at any time, however fast the machine is just now.
    clients = [Client(streams=bool(number), keeps_alive=True) for number in range(2)]
    began = time.monotonic()
    with Load(steady.url, model=DEMO_MODEL, clients=clients, max_tokens=32) as load:
        narrowed = steady.wait(
            lambda: steady.status.get("scaling") or {},
            lambda scaling: scaling.get("window") == f"{STEPS[-1]}s",
            what="the shortest window",
            seconds=600,
        )
        took = time.monotonic() - began
        said = steady.kubectl("-n", steady.namespace, "get", "hpa", steady.name, "-o", "json")
        tuned = steady.wait_condition("ScalingTuned", "True")
    told = [event["message"] for event in steady.events() if event["reason"] == "ScalingTuned"]
    figures(narrowed_after_s=took, requests=len(load.attempts), why=narrowed["why"], events=told)

    assert load.failures == []
    assert json.loads(said)["spec"]["behavior"]["scaleDown"] == {
        "stabilizationWindowSeconds": STEPS[-1],
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
    }
    assert tuned["reason"] == "FollowsLoad"
    for before, then in pairwise(STEPS):
        assert len([text for text in told if f"window {before}s → {then}s" in text]) == 1
