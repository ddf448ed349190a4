"""Which pods' figures are a pool's."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from zerolayer_dev.testing import observed
from zerolayer_operator.observe.load_source import LoadTarget, Worker, load_target
from zerolayer_operator.observe.parse import parse_pod

READY = datetime(2026, 1, 2, tzinfo=UTC)
SINCE = READY.timestamp()


def pod(name: str, **fields: Any) -> Any:
    return observed.pod("rev", name, **{"ip": f"10.0.0.{name}", "ready_at": READY, **fields})


def test_ready_workers_and_those_on_their_way_out() -> None:
    pods = (
        pod("1"),
        pod("2", gone_by=READY),
        pod("3", ready_at=None),
        pod("4", ip=None),
        pod("5", ready_at=None, gone_by=READY),
        replace(pod("6"), revision="other"),
    )
    found = load_target(observed.pool(observed.spec(), pods=pods), "rev")
    assert found == LoadTarget(
        "default",
        "pool",
        "rev",
        (Worker("1", "10.0.0.1", SINCE), Worker("2", "10.0.0.2"), Worker("5", "10.0.0.5")),
    )
    assert found.ready == 1
    assert found.ready_before(SINCE) == found.workers[:1]
    assert found.ready_before(SINCE - 1) == ()


def test_an_address_that_another_worker_has_by_now_is_not_taken_twice() -> None:
    pods = (pod("1"), pod("2", ip="10.0.0.1", gone_by=READY))
    found = load_target(observed.pool(observed.spec(), pods=pods), "rev")
    assert [worker.name for worker in found.workers] == ["1"]


def test_a_pods_address_is_read() -> None:
    body = {"metadata": {"name": "p"}, "status": {"podIP": "10.1.2.3"}}
    assert parse_pod(body).ip == "10.1.2.3"
    assert parse_pod({"metadata": {"name": "p"}}).ip is None
