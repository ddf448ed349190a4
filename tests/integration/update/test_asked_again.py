"""What a person asked of an update stays on the pool, and the same revision is tried again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from zerolayer_dev.testing.update_pool import UpdatedPool
from zerolayer_dev.testing.waiting import wait_for

pytestmark = pytest.mark.promise("changed-mid-update")

SOAK = {"strategy": "Canary", "soak": "1h", "maxSoak": "2h", "blueRetention": "2s", "failedRetention": "2s"}


@pytest.fixture
def left(make: Callable[..., UpdatedPool]) -> UpdatedPool:
    """A pool whose update a person has left, and that tries the same revision again."""
    pool = make(replicas=2, update=SOAK)
    pool.wait_workers(2)
    pool.change(drainSeconds=1)
    pool.annotate("rollback", pool.wait_step("Soak")["toRevision"])
    assert pool.wait_over()["reason"] == "Requested"
    pool.change(update={**SOAK, "maxSoak": "3h"})
    assert pool.wait_step("Soak")["standingWishes"] == ["rollback"]
    return pool


def test_old_wish_does_not_decide_about_a_second_attempt(left: UpdatedPool, figures) -> None:
    """Rolled back by a person, tried again, promoted: the first annotation is still there, and silent."""
    green = left.update["toRevision"]
    for text in ("team=a", f"zerolayer.dev/promote={green}"):
        left.kubectl("-n", left.namespace, "annotate", "zlp", left.name, text)
    entry = left.wait_over(2)

    figures(ends=[item["end"] for item in left.history])
    assert (entry["toRevision"], entry["end"]) == (green, "Promoted")


def test_wish_that_is_set_anew_counts(left: UpdatedPool, figures) -> None:
    """Taken away and set again it is about the update that goes on."""
    # The API server tells in whole seconds when it was set, and it has to be after the update's start.
    began = datetime.fromisoformat(left.update["startedAt"])
    wait_for(
        lambda: datetime.now(UTC) - began,
        until=lambda passed: passed >= timedelta(seconds=1),
        what="the second after the update's start",
        seconds=5,
    )
    left.kubectl("-n", left.namespace, "annotate", "zlp", left.name, "zerolayer.dev/rollback-")
    left.annotate("rollback", left.update["toRevision"])
    entry = left.wait_over(2)

    figures(ends=[item["end"] for item in left.history])
    assert (entry["end"], entry["reason"]) == ("RolledBack", "Requested")
