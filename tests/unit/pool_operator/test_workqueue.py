"""The queue of pools."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from zerolayer_operator import workqueue
from zerolayer_operator.metrics import WAIT_SECONDS
from zerolayer_operator.workqueue import PoolKey, WorkQueue

A, B = PoolKey("ns", "a"), PoolKey("ns", "b")


class Work:
    """Work that a test lets end when it wants to."""

    def __init__(self) -> None:
        self.started: list[PoolKey] = []
        self.gate = asyncio.Event()
        self.results: list[bool] = []
        self.running = 0
        self.most = 0

    async def __call__(self, key: PoolKey) -> bool:
        self.started.append(key)
        self.running += 1
        self.most = max(self.most, self.running)
        await self.gate.wait()
        self.running -= 1
        return self.results.pop(0) if self.results else True


@pytest.fixture
async def work() -> Work:
    return Work()


@pytest.fixture
async def queue(work: Work) -> AsyncIterator[WorkQueue]:
    made = WorkQueue(work, limit=2)
    yield made
    await made.close()


async def turn() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_requests_while_one_runs_melt_into_one_more_run(queue: WorkQueue, work: Work) -> None:
    for _ in range(5):
        queue.add(A)
        await turn()
    assert work.started == [A]

    work.gate.set()
    await turn()
    await queue.drain()
    assert work.started == [A, A]


async def test_one_pool_is_never_worked_on_twice_at_a_time(queue: WorkQueue, work: Work) -> None:
    for _ in range(3):
        queue.add(A)
        await turn()
    assert work.most == 1


async def test_pools_do_not_wait_for_each_other_up_to_the_limit(queue: WorkQueue, work: Work) -> None:
    for name in "abcd":
        queue.add(PoolKey("ns", name))
    await turn()
    assert work.most == 2

    work.gate.set()
    await turn()
    assert len(work.started) == 4


async def test_failure_backs_off_longer_each_time_and_success_forgets_it(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def call_later(delay: float, *rest: object, **named: object) -> asyncio.TimerHandle:
        delays.append(delay)
        return later(0, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_later", call_later)
    monkeypatch.setattr(workqueue, "LONGEST_BACKOFF_S", 5.0)
    work.gate.set()
    work.results = [False] * 5 + [True, False, True]
    queue = WorkQueue(work)

    queue.add(A)
    for _ in range(50):
        await turn()
    assert delays == [1, 2, 4, 5, 5]

    queue.add(A)
    for _ in range(50):
        await turn()
    assert delays[5:] == [1]
    await queue.close()


async def test_requests_do_not_cut_a_backoff_short(queue: WorkQueue, work: Work) -> None:
    work.gate.set()
    work.results = [False]
    queue.add(A)
    await turn()

    for _ in range(10):
        queue.add(A)
        await turn()
    assert work.started == [A]


async def test_failing_pool_does_not_hold_up_another(queue: WorkQueue, work: Work) -> None:
    work.gate.set()
    work.results = [False]
    queue.add(A)
    await turn()
    queue.add(B)
    await turn()
    assert work.started == [A, B]


class Timers:
    """Stands in for the loop's clock: what is to come comes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.delays: list[float] = []
        self.set: list[tuple[asyncio.TimerHandle, Callable[[], object]]] = []
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(delay: float, call: Callable[..., object], *rest: object) -> asyncio.TimerHandle:
            self.delays.append(delay)
            handle = later(3600, call, *rest)
            self.set.append((handle, lambda: call(*rest)))
            return handle

        monkeypatch.setattr(loop, "call_later", call_later)

    async def fire(self) -> None:
        """Let all come that was not called off."""
        for handle, call in self.set:
            if not handle.cancelled():
                handle.cancel()
                call()
        self.set.clear()
        await turn()


async def test_pool_is_looked_at_later_once(
    queue: WorkQueue, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers(monkeypatch)
    work.gate.set()
    queue.add_later(A, 60)
    await turn()
    assert (timers.delays, work.started) == ([60], [])

    await timers.fire()
    await timers.fire()
    assert work.started == [A]


async def test_last_time_that_was_asked_for_is_the_one(
    queue: WorkQueue, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers(monkeypatch)
    work.gate.set()
    queue.add_later(A, 60)
    queue.add_later(A, 30)
    queue.add_later(B, 10)
    queue.add_later(B, None)
    queue.add_later(B, None)
    await timers.fire()
    assert work.started == [A]


async def test_look_that_is_due_leaves_a_look_at_once_alone(
    queue: WorkQueue, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers(monkeypatch)
    work.gate.set()
    queue.add_later(A, 60)
    queue.add(A)
    await turn()
    assert work.started == [A]
    await timers.fire()
    assert work.started == [A, A]


async def test_closed_queue_has_nothing_due(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers(monkeypatch)
    work.gate.set()
    queue = WorkQueue(work)
    queue.add_later(A, 60)
    await queue.close()
    assert all(handle.cancelled() for handle, _ in timers.set)
    queue.add_later(B, 60)
    await timers.fire()
    assert (timers.delays, work.started) == ([60], [])


async def test_closed_queue_ends_what_runs_and_takes_nothing_more(work: Work) -> None:
    queue = WorkQueue(work)
    queue.add(A)
    await turn()
    await queue.close()
    queue.add(B)
    await turn()
    assert work.started == [A]


async def test_time_until_work_begins_is_counted_from_the_first_request(queue: WorkQueue, work: Work) -> None:
    def waited() -> float:
        return WAIT_SECONDS._sum.get()

    before = waited()
    queue.add(A)
    await turn()
    queue.add(A)
    await asyncio.sleep(0.05)
    queue.add(A)
    work.gate.set()
    await queue.drain()

    assert work.started == [A, A]
    assert 0.05 <= waited() - before < 0.5
