"""When the operator, at its looks at a pool, has the order changed in which workers go."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from zerolayer_dev.testing import observed
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.load import Requests
from zerolayer_operator.observe.load_source import LoadTarget
from zerolayer_operator.observe.load_sources import LoadSources
from zerolayer_operator.observe.state import DeletionCost, ObservedPool
from zerolayer_operator.tuning import Tuner
from zerolayer_operator.workqueue import PoolKey

FIXED = {"mode": "Fixed", "fixedWindow": "60s"}
KEY = PoolKey("default", "pool")


class Workers(LoadSources):
    """Workers, without an address to ask them at, of which it is known what they have to do."""

    def __init__(self) -> None:
        super().__init__(Kube.__new__(Kube), 8081, ())
        self.told: dict[str, Requests] | None = {
            "a": Requests(3, 0),
            "b": Requests(1, 0),
            "c": Requests(3, 0),
        }

    def requests(self, target: LoadTarget) -> dict[str, Requests] | None:
        assert target.pool == KEY.name
        return self.told


def fed(percent: int) -> dict[str, Any]:
    """An autoscaler with a target of 50 % that has seen so many on three workers."""

    def of(kind: str, value: int) -> list[dict[str, Any]]:
        return [{"containerResource": {kind: {"averageUtilization": value}}}]

    return {
        "spec": {"metrics": of("target", 50)},
        "status": {
            "currentReplicas": 3,
            "currentMetrics": of("current", percent),
            "conditions": [{"type": "ScalingActive", "status": "True"}],
        },
    }


def pool(percent: int = 50, minimum: int = 1, marked: str = "", down: Any = FIXED) -> ObservedPool:
    scaled = observed.spec(
        autoscaling={
            "minReplicas": minimum,
            "maxReplicas": 3,
            "metric": {"type": "CPU", "target": 50},
            "scaleDown": down,
        }
    )
    cost = DeletionCost("-10", ours=True)
    pods = tuple(
        observed.pod(scaled, name, uid=name, deletion_cost=cost if name in marked else None) for name in "abc"
    )
    return observed.pool(
        scaled,
        status=observed.serving(scaled),
        deployments=(observed.deployment(scaled, 3, 3),),
        pods=pods,
        autoscaler=fed(percent),
    )


@pytest.fixture
async def tuner() -> AsyncIterator[Callable[..., Tuner]]:
    made: list[Tuner] = []

    def make(workers: Workers, changed: Callable[[PoolKey], None] = lambda _: None) -> Tuner:
        made.append(Tuner(workers, changed))
        return made[-1]

    yield make
    for item in made:
        await item.close()


@pytest.mark.parametrize(
    ("what", "seen", "costs"),
    [
        ("the load needs all three", pool(50), {}),
        ("it fits on two", pool(33), {"b": -10}),
        ("it fits on one", pool(10), {"b": -10, "a": -9}),
        ("while the load is unknown the floor holds them", pool(10, down={"mode": "Flatness"}), {}),
        ("the floor holds them", pool(10, minimum=3), {}),
        ("nobody is about to go, and the cost is true", pool(50, marked="b"), {}),
        ("nobody is about to go, and it is not", pool(50, marked="a"), {"a": None}),
    ],
)
async def test_costs_follow_what_the_autoscaler_saw(
    what: str, seen: ObservedPool, costs: dict[str, int | None], tuner
) -> None:
    decided = await tuner(Workers()).tuned(seen, plan(seen, observed.DEFAULTS, observed.NOW))
    assert decided.costs == costs, what


async def test_before_any_worker_was_asked_costs_stay_and_without_answers_they_go(tuner) -> None:
    workers = Workers()
    workers.told = None
    seen = pool(10, marked="a")
    assert (await tuner(workers).tuned(seen, plan(seen, observed.DEFAULTS, observed.NOW))).costs == {}
    workers.told = {}
    assert (await tuner(workers).tuned(seen, plan(seen, observed.DEFAULTS, observed.NOW))).costs == {
        "a": None
    }


async def test_a_pool_of_a_fixed_size_loses_them(tuner) -> None:
    fixed = observed.spec(replicas=3)
    seen = replace(pool(marked="a"), spec=fixed)
    assert (await tuner(Workers()).tuned(seen, plan(seen, observed.DEFAULTS, observed.NOW))).costs == {
        "a": None
    }


async def test_a_look_asks_for_a_reconcile_where_the_order_changes(tuner) -> None:
    asked: list[PoolKey] = []
    workers = Workers()
    made = tuner(workers, asked.append)
    seen = pool(33, marked="b")
    decided = await made.tuned(seen, plan(seen, observed.DEFAULTS, observed.NOW))
    told = seen.status.model_copy(update={"scaling": decided.scaling_status})
    seen = replace(seen, status=told)
    await made.tuned(seen, plan(seen, observed.DEFAULTS, observed.NOW))
    asked.clear()
    made._asked(KEY.namespace, KEY.name)
    assert asked == []
    workers.told = {"a": Requests(3, 0), "b": Requests(9, 0), "c": Requests(4, 0)}
    made._asked(KEY.namespace, KEY.name)
    assert asked == [KEY]
