"""Drain: at least the grace, at most the drain's time, and nothing in flight in between."""

import asyncio
import time
from typing import Any

import pytest

from zerolayer_worker.server import limits
from zerolayer_worker.server.lifecycle import Lifecycle


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


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
    clock = Clock()
    lifecycle = Lifecycle(30, clock=clock)
    assert lifecycle.drain_left() == 30
    lifecycle.begin_drain()
    clock.now += 2
    lifecycle.begin_drain()
    assert lifecycle.drain_left() == 28
    assert lifecycle.grace_left() == limits.DRAIN_GRACE_S - 2
    clock.now += 50
    assert (lifecycle.drain_left(), lifecycle.grace_left()) == (0, 0)


async def test_waiting_ends_when_nothing_is_in_flight() -> None:
    lifecycle = Lifecycle(30)
    with lifecycle.request():
        task = asyncio.create_task(lifecycle.wait_idle(grace=0))
        with lifecycle.request():
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert lifecycle.draining
        assert not task.done()
    assert await task is True


async def test_waiting_lasts_the_grace_even_when_idle() -> None:
    lifecycle = Lifecycle(30)
    began = asyncio.get_running_loop().time()
    assert await lifecycle.wait_idle(grace=0.05)
    assert asyncio.get_running_loop().time() - began >= 0.045


async def test_waiting_ends_with_the_drains_time() -> None:
    lifecycle = Lifecycle(0.05)
    with lifecycle.request():
        assert await lifecycle.wait_idle(grace=0) is False
    assert await Lifecycle(0.05).wait_idle() is False


async def test_waiting_ends_with_its_own_limit() -> None:
    lifecycle = Lifecycle(30)
    with lifecycle.request():
        assert await lifecycle.wait_idle(grace=0, limit=0.01) is False
        assert lifecycle.in_flight == 1


async def test_a_request_that_fails_is_no_longer_in_flight() -> None:
    lifecycle = Lifecycle(30)

    def fail() -> Any:
        with lifecycle.request():
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert lifecycle.in_flight == 0


async def test_a_drain_ends_only_once_no_request_has_ended_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "DRAIN_GRACE_S", 0.2)
    lifecycle = Lifecycle(60)
    with lifecycle.request():
        draining = asyncio.create_task(lifecycle.wait_idle())
        await asyncio.sleep(0.3)
        assert not draining.done()
    ended = time.monotonic()
    assert await draining is True
    assert time.monotonic() - ended >= 0.2
