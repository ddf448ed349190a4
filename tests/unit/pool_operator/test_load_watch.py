"""Pools are asked about at their own pace, whatever others' sources do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from zerolayer_operator.observe.load import ObservedLoad
from zerolayer_operator.observe.load_source import LoadTarget, Worker
from zerolayer_operator.observe.load_watch import NOT_FOLLOWED, LoadWatch


@dataclass
class Source:
    """Notes what it is asked; waits, or fails, where it is told to."""

    asked: list[LoadTarget] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    fault: Exception | None = None

    def __post_init__(self) -> None:
        self.gate.set()

    async def refresh(self, target: LoadTarget) -> None:
        self.asked.append(target)
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault

    def load(self, target: LoadTarget) -> ObservedLoad:
        return ObservedLoad(slots_per_pod=float(len(target.workers)))

    def forget(self, namespace: str, pool: str) -> None:
        self.forgotten.append(f"{namespace}/{pool}")


def target(pool: str = "pool", workers: int = 1) -> LoadTarget:
    return LoadTarget("ns", pool, "rev", tuple(Worker(str(n), f"10.0.0.{n}") for n in range(workers)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a state, not an event
            await asyncio.sleep(0.001)


async def test_a_pool_is_asked_about_again_and_again_and_whoever_wants_to_know_is_told() -> None:
    told: list[tuple[str, str]] = []
    source, watch = Source(), LoadWatch(lambda *pool: told.append(pool), pace_s=0.001)
    assert watch.load(target()) == ObservedLoad(unknown=NOT_FOLLOWED, pending=True)
    watch.follow(target(), source)
    assert watch.load(target(workers=3)).slots_per_pod == 3
    await until(lambda: len(told) >= 3)
    watch.follow(target(workers=2), source)
    await until(lambda: target(workers=2) in source.asked)
    assert source.forgotten == []
    await watch.close()
    assert set(told) == {("ns", "pool")}
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert source.forgotten == ["ns/pool"]


async def test_a_source_that_hangs_holds_up_no_other_pool() -> None:
    hanging, fine, watch = Source(), Source(), LoadWatch(pace_s=0.001)
    hanging.gate.clear()
    watch.follow(target("a"), hanging)
    watch.follow(target("b"), fine)
    await until(lambda: len(fine.asked) >= 10)
    assert len(hanging.asked) == 1
    assert watch.load(target("a")).slots_per_pod == 1
    await watch.close()


async def test_a_source_that_fails_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    source, watch = Source(fault=ZeroDivisionError()), LoadWatch(pace_s=0.001)
    watch.follow(target(), source)
    await until(lambda: len(source.asked) >= 3)
    await watch.close()
    assert "the pool's load can't be asked for" in caplog.text


async def test_a_look_that_fails_does_not_end_the_asking(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_namespace: str, _pool: str) -> None:
        raise ZeroDivisionError

    source, watch = Source(), LoadWatch(fail, pace_s=0.001)
    watch.follow(target(), source)
    await until(lambda: len(source.asked) >= 3)
    await watch.close()
    assert "nothing can be made of the pool's load" in caplog.text


async def test_another_source_takes_over_and_the_former_forgets() -> None:
    former, latter, watch = Source(), Source(), LoadWatch(pace_s=0.001)
    watch.follow(target(), former)
    await until(lambda: len(former.asked) >= 1)
    watch.follow(target(), latter)
    await until(lambda: len(latter.asked) >= 2)
    assert former.forgotten == ["ns/pool"]
    watch.forget("ns", "pool")
    watch.forget("ns", "pool")
    assert latter.forgotten == ["ns/pool"]
    assert watch.load(target()).unknown == NOT_FOLLOWED


async def test_what_was_missed_is_not_made_up_for() -> None:
    source, watch = Source(), LoadWatch(pace_s=0.02)
    source.gate.clear()
    watch.follow(target(), source)
    await until(lambda: len(source.asked) == 1)
    clock = asyncio.get_running_loop().time
    hung = clock()
    await until(lambda: clock() > hung + 0.2)
    source.gate.set()
    began = clock()
    await until(lambda: len(source.asked) >= 4)
    assert clock() - began >= 2 * 0.02
    await watch.close()
