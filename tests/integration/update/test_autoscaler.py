"""The real autoscaler amid updates: it may always make the pool larger, and smaller where that is safe."""

import time
from collections.abc import Callable

import pytest

from zerolayer_dev.testing.external_metrics import ExternalMetrics
from zerolayer_dev.testing.scaled_pools import asks
from zerolayer_dev.testing.simulated_node import SimulatedNode
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = pytest.mark.promise("autoscaler-during-update")

OTHER = {"device": "cpu", "env": [{"name": "A", "value": "1"}]}
UPDATE = {"soak": "10m", "maxSoak": "1h", "blueRetention": "3s", "failedRetention": "2s"}
WINDOW_S = 10
SYNC_S = 2
"""At most between two looks of the autoscaler: a second, and as much again where the machine is busy."""
FLOOR = 2
AUTOSCALING = {
    "minReplicas": FLOOR,
    "maxReplicas": 20,
    "metric": {"type": "Utilization"},
    "scaleDown": {"minWindow": "5s", "maxWindow": f"{WINDOW_S}s"},
}
Make = Callable[..., UpdatedPool]


@pytest.fixture
def pool(make: Make, metrics: ExternalMetrics) -> UpdatedPool:
    """Six workers, as the autoscaler wants."""
    metrics.answer = asks(6)
    made = make(autoscaling=AUTOSCALING, update={**UPDATE, "strategy": "Canary"})
    made.wait_size(6)
    made.wait_workers(6)
    return made


def stays(pool: UpdatedPool, revision: str, at_least: int, seconds: float = WINDOW_S + 8) -> set[int]:
    """Sizes of a revision while the autoscaler would have made it smaller if it could."""
    end, seen = time.monotonic() + seconds, set[int]()
    while time.monotonic() < end:
        seen.add(pool.sizes_of()[revision])
        time.sleep(0.2)
    assert min(seen) >= at_least, seen
    return seen


def setting(pool: UpdatedPool) -> tuple[int, int]:
    """Floor and window of the autoscaler."""
    spec = pool.autoscaler["spec"]
    return spec["minReplicas"], spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"]


def wait_blue(pool: UpdatedPool, blue: str, size: int) -> dict[str, int]:
    return pool.wait(
        pool.sizes_of, lambda seen: seen.get(blue) == size, what=f"{size} workers of blue", seconds=60
    )


def test_soak_promotion_and_end(
    pool: UpdatedPool, metrics: ExternalMetrics, node: SimulatedNode, figures
) -> None:
    """Blue stays while green warms up or grows; amid the soak both grow, and blue shrinks at its own pace."""
    before, blue = setting(pool), pool.status["servingRevision"]
    assert before == (FLOOR, WINDOW_S)
    node.room = 6
    pool.change(worker=OTHER)
    green = pool.wait_step("Prepare")["toRevision"]
    pool.wait(lambda: setting(pool)[0], lambda floor: floor == 6, what="the floor at 6", seconds=20)
    metrics.answer = asks(3)
    prepare = stays(pool, blue, 6)

    metrics.answer = asks(6)
    node.room = 1000
    pool.wait_step("Soak")
    pool.wait(lambda: setting(pool)[0], lambda floor: floor == FLOOR, what="the floor back", seconds=20)
    steady = stays(pool, blue, 6)
    assert steady == {6}
    metrics.answer = asks(12)
    grown = wait_blue(pool, blue, 12)
    pool.wait(pool.sizes_of, lambda seen: seen[green] == 2, what="green to follow", seconds=30)
    time.sleep(WINDOW_S)
    metrics.answer, fallen_at = asks(9), time.monotonic()
    wait_blue(pool, blue, 11)
    took_s = time.monotonic() - fallen_at
    # The last look that asked for more may be as much older than the fall.
    assert took_s >= WINDOW_S - SYNC_S
    shrunk = wait_blue(pool, blue, 10)
    assert shrunk[green] == 2

    node.room = 12
    pool.annotate("promote", green)
    pool.wait_step("Promote")
    pool.wait(lambda: setting(pool)[0], lambda floor: floor == 10, what="the floor at 10", seconds=20)
    metrics.answer = asks(3)
    promote = stays(pool, blue, 10)
    metrics.answer = asks(9)
    node.room = 1000
    entry = pool.wait_over()
    after = pool.wait(lambda: setting(pool), lambda seen: seen == before, what="floor and window", seconds=30)
    pool.wait(pool.sizes_of, lambda seen: set(seen) == {green}, what="green alone", seconds=30)

    figures(
        prepare=sorted(prepare),
        steady=sorted(steady),
        grown=sorted(grown.values()),
        shrank_after_s=round(took_s, 1),
        window_s=WINDOW_S,
        promote=sorted(promote),
        floor_and_window=after,
    )
    assert entry["end"] == "Promoted"
    assert pool.autoscaler["spec"]["scaleTargetRef"]["name"].endswith(green)


def test_roll_back(pool: UpdatedPool, metrics: ExternalMetrics, node: SimulatedNode, figures) -> None:
    """A roll-back raises blue to what carries everything, and lets nothing shrink meanwhile."""
    before, blue = setting(pool), pool.status["servingRevision"]
    # Two workers of green beside six of blue are 25 %, which 15 % may become without a gateway.
    pool.change(worker=OTHER, update={**UPDATE, "canaryWeight": 15})
    green = pool.wait_step("Soak")["toRevision"]
    pool.wait(lambda: pool.update.get("weight", 0), bool, what="requests for green", seconds=30)
    node.room = 8
    pool.annotate("rollback", green)
    update = pool.wait_step("RollBack")
    raised = update["raiseTo"]
    assert raised > 6
    wait_blue(pool, blue, raised)
    node.room = 6
    metrics.answer = asks(3)
    rolling = stays(pool, blue, raised) if pool.update else {raised}
    node.room = 1000
    entry = pool.wait_over()
    after = pool.wait(lambda: setting(pool), lambda seen: seen == before, what="floor and window", seconds=30)

    figures(raised=raised, sizes=sorted(rolling), floor_and_window=after)
    assert (entry["end"], entry["reason"]) == ("RolledBack", "Requested")
    assert pool.status["servingRevision"] == blue
