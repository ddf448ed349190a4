"""Updates without a gateway: the share of workers is the share of requests."""

from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.testing.simulated_answers import Answers
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = pytest.mark.promise("update-without-gateway")

OTHER = {"device": "cpu", "env": [{"name": "A", "value": "1"}]}
QUICK = {
    "strategy": "Canary",
    "soak": "8s",
    "maxSoak": "20s",
    "minSamples": 50,
    "blueRetention": "2s",
    "failedRetention": "2s",
}
Make = Callable[..., UpdatedPool]


def selects(pool: UpdatedPool) -> str | None:
    """The revision that the pool's Service selects; none where it selects all."""
    return pool.read("service", pool.name)["spec"]["selector"].get("zerolayer.dev/revision")


@pytest.mark.parametrize(("replicas", "share"), [(1, 50), (3, 25)])
def test_few_workers_have_a_canary_without_requests_and_wait_for_a_person(
    make: Make, replicas: int, share: int, figures
) -> None:
    """One beside one or three would get far more than its weight: it gets nothing, and a person decides."""
    pool = make(replicas=replicas, update={**QUICK, "promotion": "Manual"})
    pool.wait_workers(replicas)
    blue = pool.status["servingRevision"]
    pool.change(worker=OTHER)

    waiting = pool.wait_step("AwaitPromotion")

    assert (waiting["share"], waiting["weight"], waiting["canary"]) == (share, 0, "0%")
    assert selects(pool) == blue
    assert pool.sizes_of() == {blue: replicas, waiting["toRevision"]: 1}
    pool.annotate("promote", waiting["toRevision"])
    entry = pool.wait_over()
    figures(workers=replicas, share=share, end=entry["end"], by=entry["decidedBy"])
    assert (entry["end"], entry["decidedBy"]) == ("Promoted", "person")
    wanted = {waiting["toRevision"]: replicas}
    pool.wait(pool.sizes_of, lambda seen: seen == wanted, what="green alone", seconds=30)


def test_canary_that_nobody_asks_is_never_promoted_by_itself(make: Make, figures) -> None:
    """A canary without requests and without a golden set is left when the longest soak is over."""
    pool = make(replicas=1, update=QUICK)
    pool.wait_workers(1)
    blue = pool.status["servingRevision"]
    pool.change(worker=OTHER)

    entry = pool.wait_over()

    figures(workers=1, end=entry["end"], reason=entry["reason"])
    assert (entry["end"], entry["reason"]) == ("RolledBack", "NoRequests")
    assert pool.status["servingRevision"] == blue


def test_many_workers_share_the_requests(make: Make, answers: Answers, figures) -> None:
    """Of 14 workers 2 are the canary's: it gets 14 % of the requests, is judged, and takes over."""
    pool = make(replicas=12, update=QUICK)
    pool.wait_workers(12)
    blue = pool.status["servingRevision"]
    pool.change(worker=OTHER)

    soaking = pool.wait_step("Soak")
    seen: dict[str, Any] = {"share": set(), "selects": set()}

    def over() -> bool:
        update = pool.update
        if update.get("step") == "Soak":
            seen["share"].add(update["share"])
            seen["selects"].add(selects(pool))
        return bool(pool.history)

    sizes = pool.watch_sizes(over)
    entry = pool.wait_over()
    figures(workers=12, share=max(seen["share"]), end=entry["end"], samples=entry["samples"])
    green = soaking["toRevision"]
    assert (entry["end"], entry["decidedBy"]) == ("Promoted", "verdict")
    assert seen["share"] == {14}
    assert None in seen["selects"]
    assert min(item[blue] for item in sizes if blue in item) == 12
    assert selects(pool) == green
