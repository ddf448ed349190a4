"""An update from step to step, on a real API server, with its autoscaler and without a gateway."""

from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.pools import Pool

QUICK = {"soak": "1s", "maxSoak": "1h", "blueRetention": "3s", "failedRetention": "2s"}
OTHER = {"device": "cpu", "env": [{"name": "A", "value": "1"}]}


@pytest.fixture
def begun(make_pool, warm, api) -> Callable[..., Pool]:
    """A pool with a canary that soaks."""

    def begun(replicas: int = 9, **update: Any) -> Pool:
        pool = make_pool(replicas=replicas, update={**QUICK, **update})
        warm(pool, replicas)
        pool.change(worker=OTHER)
        wait_step(api, pool, "Soak")
        return pool

    return begun


def wait_step(api: Any, pool: Pool, step: str | None, *, ready: bool = True) -> dict[str, Any]:
    """Stands in for nodes until an update is at a step, or over."""

    def look() -> dict[str, Any]:
        if ready:
            make_ready(api, pool.api, pool.namespace, pool.name)
        return pool.status

    def there(status: dict[str, Any]) -> bool:
        return status.get("update", {}).get("step") == step

    return pool.wait(look, there, what=f"step {step}", seconds=60)


def annotate(pool: Pool, name: str, revision: str) -> None:
    pool.kubectl("-n", pool.namespace, "annotate", "zlp", pool.name, f"zerolayer.dev/{name}={revision}")


def test_canary_is_promoted_by_a_person(begun: Callable[..., Pool], api: Any) -> None:
    pool = begun()
    soaking = pool.status
    update = soaking["update"]
    blue, green = update["fromRevision"], update["toRevision"]
    assert soaking["servingRevision"] == blue
    assert soaking["phase"] == "Updating"
    assert pool.deployments()[green]["spec"]["replicas"] == 1
    wait_step(api, pool, "Soak")
    assert pool.status["update"]["share"] == 10
    service = pool.read("service", pool.name)
    assert "zerolayer.dev/revision" not in service["spec"]["selector"]

    annotate(pool, "promote", green)
    retained = wait_step(api, pool, "Retain")

    assert retained["servingRevision"] == green
    assert pool.read("service", pool.name)["spec"]["selector"]["zerolayer.dev/revision"] == green
    assert pool.deployments()[green]["spec"]["replicas"] == 9
    assert pool.deployments()[blue]["spec"]["replicas"] == 9
    over = wait_step(api, pool, None)
    pool.wait(lambda: set(pool.deployments()), lambda seen: seen == {green}, what="green alone", seconds=30)
    (entry,) = over["history"]
    assert (entry["end"], entry["reason"], entry["decidedBy"]) == ("Promoted", "Requested", "person")
