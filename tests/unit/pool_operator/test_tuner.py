"""Looks at pools' load beside the reconciles: what is asked for, written and remembered, and how often."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.status import ScalingStatus, WarmupStatus
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.decide import events
from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.decide.plan import Plan, plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.load import Counted, LoadSample, ObservedLoad
from zerolayer_operator.observe.load_source import LoadTarget
from zerolayer_operator.observe.state import ChildKey, ObservedPool
from zerolayer_operator.tuning import Tuner
from zerolayer_operator.workqueue import PoolKey

KEY = PoolKey("default", "pool")
START = 1_000_000.0
AUTOSCALING = {"minReplicas": 1, "maxReplicas": 9, "metric": {"type": "Utilization", "target": 70}}


@dataclass
class World:
    """A clock, a load, and everything that the tuner tells."""

    now: float = START
    busy: float = 4.0
    unknown: str | None = None
    pending: bool = False
    asked_for: list[PoolKey] = field(default_factory=list)
    figures: list[Figures] = field(default_factory=list)
    forgotten: list[PoolKey] = field(default_factory=list)
    kept: list[set[Any]] = field(default_factory=list)

    # As LoadSources
    async def choose(self, _namespace: str, _named: object) -> None:
        return None

    def source(self, _choice: object) -> "World":
        return self

    def requests(self, _target: LoadTarget) -> None:
        return None

    def waits(self, _target: LoadTarget) -> None:
        return None

    def keep(self, choices: set[Any]) -> None:
        self.kept.append(choices)

    async def close(self) -> None:
        pass

    # As a LoadSource
    async def refresh(self, target: LoadTarget) -> None:
        pass

    def load(self, _target: LoadTarget) -> ObservedLoad:
        counted = Counted(60, self.busy * 60, self.busy * 60, 0, self.busy * 60, self.busy * 60)
        samples = tuple(
            LoadSample(self.now - 15 * ago, counted, self.busy / 8, 2) for ago in reversed(range(240))
        )
        return ObservedLoad(samples, 4.0, self.unknown, pending=self.pending)

    def forget(self, namespace: str | PoolKey, _name: str | None = None) -> None:
        if isinstance(namespace, PoolKey):
            self.forgotten.append(namespace)

    # As a sink
    def tell(self, _key: PoolKey, figures: Figures) -> None:
        self.figures.append(figures)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def tuner(world: World) -> AsyncIterator[Tuner]:
    made = tuner_of(world)
    yield made
    await made.close()


def tuner_of(world: World) -> Tuner:
    sources: Any = world
    return Tuner(
        sources, world.asked_for.append, (world,), clock=lambda: world.now, monotonic=lambda: world.now
    )


def hpa(window_s: int, floor: int) -> dict[str, Any]:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": window_s}}
    return {"metadata": {"name": "pool"}, "spec": {"minReplicas": floor, "behavior": behavior}}


def seen(
    told: ScalingStatus | None = None, window_s: int = 300, floor: int = 1, **autoscaling: Any
) -> ObservedPool:
    """A pool of two workers, as a reconcile finds it."""
    of = spec(autoscaling={**AUTOSCALING, **autoscaling})
    status = serving(of).model_copy(
        update={"scaling": told, "warmup": WarmupStatus(p50_seconds=20, p95_seconds=30)}
    )
    found = pool(
        of, status=status, deployments=(deployment(of, 2, 2),), autoscaler_revision=revision_hash(of)
    )
    key = ChildKey("HorizontalPodAutoscaler", "pool")
    return replace(found, children={**found.children, key: hpa(window_s, floor)})


async def reconciled(tuner: Tuner, found: ObservedPool) -> tuple[Plan, ObservedPool]:
    """The plan, and the pool as the next reconcile finds it, which the status' own event asks for."""
    decided = await tuner.tuned(found, plan(found, DEFAULTS, NOW))
    assert decided.scaling is not None
    status = found.status.model_copy(update={"scaling": decided.scaling_status})
    key = ChildKey("HorizontalPodAutoscaler", "pool")
    children = {**found.children, key: hpa(decided.scaling.window_s, decided.scaling.floor)}
    after = replace(found, status=status, children=children)
    await tuner.tuned(after, plan(after, DEFAULTS, NOW))
    return decided, after


async def test_autoscaler_is_set_by_the_load_and_everybody_is_told(tuner: Tuner, world: World) -> None:
    decided, _ = await reconciled(tuner, seen())

    assert decided.scaling is not None
    assert decided.scaling_status is not None
    assert (decided.scaling.window_s, decided.scaling.floor) == (300, 2)
    assert decided.scaling_status == ScalingStatus(
        window="300s",
        hold=2,
        flatness="1.00",
        utilization=50,
        why="flatness 1.00 over 20m",
        last_change="1970-01-12T13:46:40Z",
        regrets=0,
        replica_seconds_saved=0,
    )
    figures = world.figures[-1]
    assert (figures.wanted, figures.ready, figures.slots, figures.hold) == (2, 2, 8.0, 2)
    assert (figures.utilization, figures.offered_slots, figures.known) == (0.5, 4.0, True)


async def test_window_narrows_a_step_a_minute_and_each_step_is_one_event(tuner: Tuner, world: World) -> None:
    decided, found = await reconciled(tuner, seen())
    windows, told = [], []
    for _ in range(24):
        world.now += 15
        decided, after = await reconciled(tuner, found)
        told += list(events.planned(found, decided))
        windows.append(decided.scaling.window_s if decided.scaling else 0)
        found = after

    assert [windows[at] for at in (2, 3, 7, 11, 15, 23)] == [300, 240, 180, 120, 60, 60]
    tuned = [event for event in told if event.reason == "ScalingTuned"]
    assert len(tuned) == len({event.key for event in tuned}) == 4
    assert tuned[0].message.startswith("window 300s → 240s; flatness 1.00 over 20m: 300s → 240s, a replay")


async def test_a_change_of_hold_alone_does_not_repeat_why_the_window_was_set(
    tuner: Tuner, world: World
) -> None:
    _, found = await reconciled(tuner, seen())
    world.now, world.busy = world.now + 15, 12.0
    decided, _ = await reconciled(tuner, found)
    (told,) = events.planned(found, decided)
    assert told.message == "hold 2 → 5; the load's recent peaks are to find room"


async def test_a_hold_for_want_of_figures_says_what_they_lack(tuner: Tuner, world: World) -> None:
    world.busy = 0.5
    _, found = await reconciled(tuner, seen())
    world.now, world.unknown = world.now + 15, "nobody answers"
    decided, _ = await reconciled(tuner, found)
    (told,) = events.planned(found, decided)
    assert told.message == "hold none → 2; nobody answers"


async def test_only_figures_that_moved_are_told_again_after_five_minutes(tuner: Tuner, world: World) -> None:
    _, found = await reconciled(tuner, seen(scaleDown={"mode": "Fixed"}))
    world.busy = 4.5
    world.now += 299
    tuner._asked("default", "pool")
    assert world.asked_for == []
    world.now += 1
    tuner._asked("default", "pool")
    assert world.asked_for == [KEY]
    decided, found = await reconciled(tuner, found)
    assert decided.scaling_status is not None
    assert decided.scaling_status.utilization == 56
    world.busy = 6.0
    world.now += 15
    tuner._asked("default", "pool")
    assert world.asked_for == [KEY]


async def settled(tuner: Tuner, world: World, found: ObservedPool) -> ObservedPool:
    """The pool once nothing about it changes any more."""
    for _ in range(9):
        world.now += 60
        _, found = await reconciled(tuner, found)
    return found


async def test_settled_pool_asks_for_nothing(tuner: Tuner, world: World) -> None:
    found = await settled(tuner, world, seen())
    for _ in range(40):
        world.now += 15
        tuner._asked("default", "pool")
    assert world.asked_for == []
    decided, _ = await reconciled(tuner, found)
    assert decided.scaling_status is found.status.scaling


async def test_outage_asks_for_a_reconcile_once(tuner: Tuner, world: World) -> None:
    found = await settled(tuner, world, seen())
    assert found.status.scaling is not None
    assert found.status.scaling.window == "60s"
    world.unknown = "Prometheus is gone, as worker 99 says"
    world.now += 15
    tuner._asked("default", "pool")
    assert world.asked_for == [KEY]
    decided, found = await reconciled(tuner, found)
    assert decided.scaling is not None
    assert decided.scaling_status is not None
    assert (decided.scaling.window_s, decided.scaling.floor) == (300, 2)
    assert decided.scaling_status.why == world.unknown
    for number in range(15):
        world.unknown = f"Prometheus is gone, as worker {number} says"
        world.now += 15
        tuner._asked("default", "pool")
    assert world.asked_for == [KEY]


async def test_size_that_good_figures_asked_for_is_kept_through_an_outage(tuner: Tuner, world: World) -> None:
    found = await settled(tuner, world, seen())
    world.unknown = "Prometheus is gone"
    # Somebody takes a worker away while nobody knows the load.
    fewer = replace(found, deployments=(replace(found.deployments[0], size=1),))
    decided, _ = await reconciled(tuner, fewer)
    assert decided.scaling is not None
    assert decided.scaling.floor == 2


async def test_a_new_operator_goes_on_where_the_last_one_stopped(world: World) -> None:
    told = ScalingStatus(
        window="120s",
        hold=3,
        flatness="1.00",
        why="flatness 1.00 over 20m: 180s → 120s",
        last_change="1970-01-12T13:46:00Z",
        regrets=7,
        replica_seconds_saved=-42,
    )
    world.pending, world.unknown = True, "not asked yet"
    tuner = tuner_of(world)
    decided, found = await reconciled(tuner, seen(told, 120, 3))
    assert decided.scaling is not None
    assert (decided.scaling.window_s, decided.scaling.floor) == (120, 3)
    assert decided.scaling_status is told
    assert list(events.planned(found, decided)) == []

    world.pending, world.unknown = False, None
    decided, _ = await reconciled(tuner, found)
    assert decided.scaling is not None
    assert decided.scaling_status is not None
    # Forty of the sixty seconds since the last change had passed already.
    assert decided.scaling.window_s == 120
    world.now += 20
    decided, _ = await reconciled(tuner, found)
    assert decided.scaling is not None
    assert decided.scaling_status is not None
    assert decided.scaling.window_s == 60
    assert (decided.scaling_status.regrets, decided.scaling_status.replica_seconds_saved) == (7, -42)
    await tuner.close()


@pytest.mark.parametrize("hold", [None, 2])
async def test_a_new_operator_takes_no_floor_that_an_update_has_pinned_for_a_hold(
    world: World, hold: int | None
) -> None:
    """It would stay when the update is over: for as long as the load is unknown."""
    told = ScalingStatus(window="120s", hold=hold, last_change="1970-01-12T13:46:00Z")
    world.pending, world.unknown = True, "not asked yet"
    found = seen(told, 120, floor=3)
    old, began = found.deployments[0].revision, told.last_change or ""
    update = UpdateStatus(step=Step.PROMOTE, from_revision=old, to_revision="other", started_at=began)
    pinned = replace(found, status=found.status.model_copy(update={"update": update}))
    tuner = tuner_of(world)

    decided = await tuner.tuned(pinned, plan(pinned, DEFAULTS, NOW))

    assert decided.scaling is not None
    assert decided.scaling.floor == (hold or 1)
    await tuner.close()


async def test_new_revision_that_was_not_asked_yet_changes_nothing(tuner: Tuner, world: World) -> None:
    found = await settled(tuner, world, seen())
    world.pending, world.unknown = True, "not asked yet"
    of = spec(worker={"device": "cpu", "maxBatchSize": 2}, autoscaling=AUTOSCALING)
    promoted = replace(
        found,
        spec=of,
        status=found.status.model_copy(update={"serving_revision": revision_hash(of)}),
        deployments=(deployment(of, 2, 2),),
        autoscaler_revision=revision_hash(of),
    )
    decided, _ = await reconciled(tuner, promoted)
    assert decided.scaling is not None
    assert decided.scaling.window_s == 60
    assert decided.scaling_status is promoted.status.scaling


async def test_pool_of_a_fixed_size_is_not_looked_at(tuner: Tuner, world: World) -> None:
    _, found = await reconciled(tuner, seen())
    of = spec(replicas=2)
    fixed = replace(found, spec=of)
    before = plan(fixed, DEFAULTS, NOW)
    assert await tuner.tuned(fixed, before) == before
    assert world.forgotten == [KEY]
    assert world.kept == [set()]
    tuner._asked("default", "pool")
    assert len(world.figures) == 2


async def test_condition_says_whether_the_window_follows_the_load(tuner: Tuner, world: World) -> None:
    decided, found = await reconciled(tuner, seen())
    told = _told(found, decided)
    assert (told["status"], told["reason"]) == ("True", "FollowsLoad")

    found = replace(found, status=report(found, decided, (), NOW))
    world.unknown = "Prometheus is gone"
    decided, _ = await reconciled(tuner, found)
    told = _told(found, decided)
    assert (told["status"], told["reason"]) == ("False", "LoadUnknown")
    assert told["message"] == (
        "Prometheus is gone; until then a scale-down waits for 300 s and leaves at least 2 workers"
    )
    status = report(found, decided, (), NOW)
    assert [event.reason for event in events.reported(found, status)] == ["LoadUnknown"]

    world.pending = True
    world.unknown = "not asked yet"
    pending = Tuner(tuner._sources, world.asked_for.append, clock=lambda: world.now, monotonic=lambda: 0.0)
    decided = await pending.tuned(found, plan(found, DEFAULTS, NOW))
    assert _told(found, decided)["status"] == "True"
    await pending.close()


def _told(found: ObservedPool, decided: Plan) -> dict[str, Any]:
    conditions = report(found, decided, (), NOW).to_wire()["conditions"]
    return next(item for item in conditions if item["type"] == "ScalingTuned")


async def test_no_such_condition_with_mode_fixed(tuner: Tuner) -> None:
    decided, found = await reconciled(tuner, seen(scaleDown={"mode": "Fixed"}))
    assert "ScalingTuned" not in {item.type for item in report(found, decided, (), NOW).conditions or ()}


async def test_a_reason_of_any_length_finds_room(tuner: Tuner, world: World) -> None:
    """Such as one that names every Prometheus which an installation allows."""
    world.unknown = "gone " * 2000
    decided, after = await reconciled(tuner, seen())
    assert decided.scaling_status is not None
    assert (decided.scaling_status.why or "").startswith("gone gone")
    world.now += 15
    tuner._asked("default", "pool")
    assert after.status.scaling == decided.scaling_status
    assert world.asked_for == []


async def test_another_cause_is_told_within_a_minute(tuner: Tuner, world: World) -> None:
    """A pool whose workers have just become ready, and tell nonsense, has workers."""
    world.unknown = "no worker is ready"
    _, found = await reconciled(tuner, seen())
    for _ in range(3):
        world.unknown = "worker pool-7c9-x2 tells nonsense"
        world.now += 15
        tuner._asked("default", "pool")
    assert world.asked_for == []
    world.now += 15
    tuner._asked("default", "pool")
    assert world.asked_for == [KEY]
    decided, _ = await reconciled(tuner, found)
    assert decided.scaling_status is not None
    assert decided.scaling_status.why == world.unknown
    world.unknown = "worker pool-7c9-n8 tells nonsense"
    for _ in range(8):
        world.now += 15
        tuner._asked("default", "pool")
    assert world.asked_for == [KEY]
