"""What the looks at a pool make of its price, and of how long its requests wait."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from zerolayer_dev.testing import observed
from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.observe.first_tokens import Waits
from zerolayer_operator.observe.load import ObservedLoad
from zerolayer_operator.observe.load_source import LoadTarget
from zerolayer_operator.observe.state import ObservedPool
from zerolayer_operator.tuning import Tuner
from zerolayer_operator.workqueue import PoolKey

KEY = PoolKey("default", "pool")
PRICE = {"perReplicaHour": 3600, "currency": "EUR"}
WEIGHTED = {**PRICE, "latencyPenalty": {"target": "1s"}}


@dataclass
class World:
    """A clock and workers that let wait, with what is told of them."""

    now: float = 1_000_000.0
    waiting: Waits | None = None
    target: LoadTarget | None = None
    figures: Figures | None = None

    # As LoadSources
    def source(self, _choice: object) -> "World":
        return self

    def requests(self, _target: LoadTarget) -> None:
        return None

    def waits(self, target: LoadTarget) -> Waits | None:
        self.target = target
        return self.waiting

    def keep(self, _choices: object) -> None:
        pass

    async def close(self) -> None:
        pass

    # As a LoadSource, and as a sink
    async def refresh(self, target: LoadTarget) -> None:
        pass

    def load(self, _target: LoadTarget) -> ObservedLoad:
        return ObservedLoad(unknown="nobody asked")

    def forget(self, *_: object) -> None:
        pass

    def tell(self, _key: PoolKey, figures: Figures) -> None:
        self.figures = figures


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def tuner(world: World) -> AsyncIterator[Tuner]:
    sources: Any = world
    made = Tuner(sources, lambda _: None, (world,), clock=lambda: world.now, monotonic=lambda: world.now)
    yield made
    await made.close()


def pool(cost: dict[str, Any] | None, told: ScalingStatus | None = None) -> ObservedPool:
    """A pool of two workers that costs something."""
    scaling = {"maxReplicas": 9, "scaleDown": {"mode": "Fixed"}, **({"cost": cost} if cost else {})}
    of = observed.spec(autoscaling=scaling)
    status = observed.serving(of).model_copy(update={"scaling": told})
    return observed.pool(of, status=status, deployments=(observed.deployment(of, 2, 2),))


async def told_after(tuner: Tuner, world: World, found: ObservedPool, seconds: float) -> ScalingStatus:
    """What a status says that is first written after a while, with a look every 15 s before."""
    for _ in range(round(seconds / 15)):
        await tuner.tuned(found, plan(found, observed.DEFAULTS, observed.NOW))
        world.now += 15
    status = (await tuner.tuned(found, plan(found, observed.DEFAULTS, observed.NOW))).scaling_status
    assert status is not None
    return status


def money_of(status: ScalingStatus) -> dict[str, object]:
    """What there is in a status only with a price."""
    names = ("firstTokenP99", "latencyPenalty", "replicaSecondsSpent", "replicaSecondsPenalty")
    wire = status.to_wire()
    return {name: wire[name] for name in (*names, "spent", "spentWeighted", "saved") if name in wire}


async def test_nothing_is_told_without_a_price_and_nobody_asked_about_waits(
    tuner: Tuner, world: World
) -> None:
    status = await told_after(tuner, world, pool(None), 60)
    assert money_of(status) == {}
    assert world.target is not None
    assert not world.target.first_tokens


async def test_a_price_alone_weights_nothing(tuner: Tuner, world: World) -> None:
    world.waiting = Waits(9)
    status = await told_after(tuner, world, pool(PRICE), 60)
    assert money_of(status) == {"replicaSecondsSpent": 120, "spent": "120.00 EUR", "saved": "0.00 EUR"}
    assert world.target is not None
    assert not world.target.first_tokens


async def test_waiting_weighs_and_every_figure_follows_from_those_beside_it(
    tuner: Tuner, world: World
) -> None:
    world.waiting = Waits(1.6)
    status = await told_after(tuner, world, pool(WEIGHTED), 60)
    assert money_of(status) == {
        "firstTokenP99": "1.6s",
        "latencyPenalty": "1.12",
        "replicaSecondsSpent": 120,
        "replicaSecondsPenalty": 14,
        "spent": "120.00 EUR",
        "spentWeighted": "134.40 EUR",
        "saved": "-14.40 EUR",
    }
    assert world.target is not None
    assert world.target.first_tokens
    figures = world.figures
    assert figures is not None
    assert (figures.first_token_p99_s, figures.latency_penalty) == (1.6, pytest.approx(1.12))
    assert (figures.spent, figures.weighted, figures.saved) == ("120.00 EUR", "134.40 EUR", "-14.40 EUR")


@pytest.mark.parametrize("waiting", [None, Waits(None)])
async def test_a_wait_that_is_not_known_is_not_called_short(
    tuner: Tuner, world: World, waiting: Waits | None
) -> None:
    world.waiting = waiting
    status = await told_after(tuner, world, pool(WEIGHTED), 60)
    assert money_of(status) == {"replicaSecondsSpent": 120, "spent": "120.00 EUR", "saved": "0.00 EUR"}


@pytest.mark.parametrize(
    ("p99_s", "said"),
    [(0.0049, "5ms"), (0.85, "850ms"), (0.9999, "1s"), (2.475, "2.48s"), (600, "600s")],
)
async def test_p99_is_told_as_a_duration(tuner: Tuner, world: World, p99_s: float, said: str) -> None:
    world.waiting = Waits(p99_s)
    assert (await told_after(tuner, world, pool(WEIGHTED), 0)).first_token_p99 == said


async def test_a_new_operator_counts_on(tuner: Tuner, world: World) -> None:
    before = ScalingStatus(
        window="300s",
        replica_seconds_saved=500,
        replica_seconds_spent=1000,
        replica_seconds_penalty=100,
        last_change="1970-01-12T13:46:00Z",
        regrets=0,
    )
    world.waiting = Waits(0.2)
    found = pool(WEIGHTED, before)
    await told_after(tuner, world, found, 60)
    figures = world.figures
    assert figures is not None
    assert (figures.spent_s, figures.saved_s, figures.penalty_s) == (1120, 500, 100)
    assert (figures.spent, figures.weighted, figures.saved) == ("1120.00 EUR", "1220.00 EUR", "400.00 EUR")


async def test_a_penalty_that_is_asked_for_no_more_is_taken_off_no_more(tuner: Tuner, world: World) -> None:
    world.waiting = Waits(6)
    status = await told_after(tuner, world, pool(WEIGHTED), 60)
    assert status.saved == "-120.00 EUR"
    status = await told_after(tuner, world, replace(pool(PRICE)), 0)
    assert (status.saved, status.spent_weighted) == ("0.00 EUR", None)
