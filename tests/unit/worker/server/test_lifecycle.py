"""Drain: at least the grace, at most the drain's time, and nothing in flight at its end."""

import asyncio
from typing import Any

import pytest

from zerolayer_dev.testing.clock import FakeClock
from zerolayer_worker.server import limits
from zerolayer_worker.server.lifecycle import Lifecycle


def test_stages_of_a_life() -> None:
    lifecycle = Lifecycle(30)
    assert (lifecycle.engine, lifecycle.stage) == (None, "load")
    lifecycle.on_stage("settle")
    assert lifecycle.stage == "settle"
    lifecycle.loaded(object(), {"load": 1.0})  # type: ignore[arg-type]
    assert (lifecycle.stage, lifecycle.stages, lifecycle.draining) == ("ready", {"load": 1.0}, False)
    lifecycle.begin_drain()
    assert lifecycle.draining


def test_a_drain_is_counted_from_its_first_call() -> None:
    clock = FakeClock(100.0)
    lifecycle = Lifecycle(30, clock=clock)
    assert lifecycle.drain_left() == 30
    lifecycle.begin_drain()
    clock.now += 2
    lifecycle.begin_drain()
    assert lifecycle.drain_left() == 28
    assert lifecycle.grace_left() == limits.DRAIN_GRACE_S - 2
    clock.now += 50
    assert (lifecycle.drain_left(), lifecycle.grace_left()) == (0, 0)


async def test_a_drain_waits_for_what_is_in_flight_and_then_for_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "DRAIN_GRACE_S", 0.01)
    lifecycle = Lifecycle(30)
    with lifecycle.request():
        task = asyncio.create_task(lifecycle.drain())
        with lifecycle.request():
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert lifecycle.draining
        assert not task.done()
    assert await task is True
    assert lifecycle.settles_in() == 0


def test_when_a_drain_is_over() -> None:
    """Once its grace is, nothing is in flight, and no request has ended for as long as the grace."""
    clock = FakeClock(100.0)
    lifecycle = Lifecycle(60, clock=clock)
    lifecycle.begin_drain()
    assert lifecycle.settles_in() == 5
    clock.now += 4
    assert lifecycle.settles_in() == 1
    with lifecycle.request():
        clock.now += 20
        assert lifecycle.settles_in() is None
    assert lifecycle.settles_in() == 5
    clock.now += 3
    with lifecycle.request():
        clock.now += 1
    assert lifecycle.settles_in() == 5
    clock.now += 5
    assert lifecycle.settles_in() == 0


async def test_waiting_for_answers_does_not_wait_for_quiet() -> None:
    lifecycle = Lifecycle(30)
    lifecycle.begin_drain()
    with lifecycle.request():
        task = asyncio.create_task(lifecycle.answered())
        await asyncio.sleep(0)
        assert not task.done()
    assert await task is True
    assert lifecycle.settles_in() > 0


async def test_waiting_ends_with_the_drains_time() -> None:
    lifecycle = Lifecycle(0.01)
    with lifecycle.request():
        assert await lifecycle.drain() is False
        assert await lifecycle.answered() is False
    assert await Lifecycle(0.01).drain() is False


def test_the_grace_is_never_longer_than_the_drain() -> None:
    assert Lifecycle(limits.DRAIN_GRACE_S - 3).grace_left() == limits.DRAIN_GRACE_S - 3


async def test_a_request_that_fails_is_no_longer_in_flight() -> None:
    lifecycle = Lifecycle(30)

    def fail() -> Any:
        with lifecycle.request():
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert lifecycle.in_flight == 0
