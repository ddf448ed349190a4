"""Prometheus that goes away amid a soak takes nothing but users' own checks with it."""

from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = pytest.mark.promise("changed-mid-update")

OTHER = {"device": "cpu", "env": [{"name": "A", "value": "1"}]}
UPDATE = {
    "strategy": "Canary",
    "soak": "8s",
    "maxSoak": "5m",
    "minSamples": 50,
    "blueRetention": "2s",
    "failedRetention": "2s",
}
QUERY = {"name": "mine", "query": "vector(1)", "comparison": "AtMost", "threshold": "2"}
Make = Callable[..., UpdatedPool]


@pytest.fixture
def addresses(prometheus: Prometheus) -> str:
    """A Prometheus that has nothing to scrape: it answers."""
    prometheus.start({}, "1s")
    return prometheus.url


def check(update: dict[str, Any], name: str) -> str:
    """What a check says."""
    return next((item["result"] for item in update.get("checks", ()) if item["name"] == name), "")


def test_own_check_without_prometheus_is_no_pass(make: Make, prometheus: Prometheus, figures) -> None:
    """No data in a check that is on is no pass: the soak goes on until a person, or data, decides."""
    pool = make(replicas=9, update={**UPDATE, "checks": {"queries": [QUERY]}})
    pool.wait_workers(9)
    pool.change(worker=OTHER)
    pool.wait(
        lambda: pool.update, lambda seen: check(seen, "query/mine") == "Ok", what="an answer", seconds=60
    )
    prometheus.stop()
    waiting = pool.wait(
        lambda: pool.update,
        lambda seen: check(seen, "query/mine") == "NoData" and seen["samples"] >= 50,
        what="no data",
        seconds=120,
    )
    assert (waiting["step"], waiting["verdict"], waiting["reason"]) == ("Soak", "Undecided", "NoData")
    pool.annotate("promote", waiting["toRevision"])
    entry = pool.wait_over()
    figures(while_gone=waiting["reason"], end=entry["end"], by=entry["decidedBy"])
    assert (entry["end"], entry["decidedBy"]) == ("Promoted", "person")


def test_verdict_needs_no_prometheus(make: Make, prometheus: Prometheus, figures) -> None:
    """The operator's own checks rest on what the workers tell: the update goes on all the same."""
    pool = make(replicas=9, update=UPDATE)
    pool.wait_workers(9)
    pool.change(worker=OTHER)
    pool.wait_step("Soak")
    prometheus.stop()

    entry = pool.wait_over()

    figures(end=entry["end"], by=entry["decidedBy"], samples=entry["samples"])
    assert (entry["end"], entry["decidedBy"]) == ("Promoted", "verdict")
