"""An autoscaled pool follows its load."""

import time

import pytest

from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import DEMO_MODEL

AUTOSCALING = {
    "minReplicas": 1,
    "maxReplicas": 2,
    "metric": {"type": "CPU", "target": 100},
    "scaleDown": {"mode": "Fixed", "fixedWindow": "15s"},
}


@pytest.mark.promise("pool-follows-load", "least-rbac")
def test_pool_grows_under_load_and_shrinks_after(pool, figures) -> None:
    """An autoscaled pool grows under load, shrinks after it, and loses no request on the way."""
    elastic = pool("elastic", autoscaling=AUTOSCALING)
    elastic.wait_ready(1)
    clients = [Client(streams=bool(number % 2), keeps_alive=True) for number in range(4)]
    began = time.monotonic()
    with Load(elastic.url, model=DEMO_MODEL, clients=clients, max_tokens=48) as load:
        elastic.wait_ready(2, seconds=240)
        grown = time.monotonic()
    ended = time.monotonic()
    elastic.wait_ready(1, seconds=240)
    figures(
        grown_after_s=grown - began,
        shrunk_after_s=time.monotonic() - ended,
        requests=len(load.attempts),
        failed=len(load.failures),
    )

    assert load.failures == []
    assert [event["message"] for event in elastic.events() if event["type"] == "Warning"] == []


@pytest.mark.promise("least-rbac")
def test_size_is_kept_from_replicas_to_autoscaling_and_back(pool) -> None:
    """A pool that changes between replicas and autoscaling keeps its size."""
    switching = pool("switching", replicas=2)
    switching.wait_ready(2)
    pods = {pod["metadata"]["uid"] for pod in switching.pods()}

    switching.change(replicas=None, autoscaling=AUTOSCALING | {"minReplicas": 2})
    switching.wait_ready(2)
    switching.change(replicas=2, autoscaling=None)
    switching.wait_ready(2)

    assert {pod["metadata"]["uid"] for pod in switching.pods()} == pods
