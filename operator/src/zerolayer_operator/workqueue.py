"""A queue of pools: one reconcile at a time for each, repeated requests melt into one, failures back off."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.metrics import WAIT_SECONDS

log = logging.getLogger(__name__)

FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 60.0


@dataclass(frozen=True, slots=True, order=True)
class PoolKey:
    """Names a pool."""

    namespace: str
    name: str


class WorkQueue:
    """Runs work for pools, level-triggered: what matters is that a pool is looked at after the last request.

    Args:
        work: Does the work for one pool; true if it succeeded. It must not raise.
        limit: How many pools are worked on at the same time.
    """

    def __init__(self, work: Callable[[PoolKey], Awaitable[bool]], limit: int = 8) -> None:
        self._work = work
        self._slots = asyncio.Semaphore(limit)
        self._running: dict[PoolKey, asyncio.Task[None]] = {}
        self._again: set[PoolKey] = set()
        self._asked_at: dict[PoolKey, float] = {}
        self._failures: dict[PoolKey, int] = {}
        self._waiting: dict[PoolKey, asyncio.TimerHandle] = {}
        self._due: dict[PoolKey, asyncio.TimerHandle] = {}
        self._closed = False

    def add(self, key: PoolKey) -> None:
        """Ask for a pool to be looked at; soon, or after its backoff where it failed before."""
        if self._closed or key in self._waiting:
            return
        self._asked_at.setdefault(key, time.monotonic())
        if key in self._running:
            self._again.add(key)
        else:
            self._start(key)

    def add_later(self, key: PoolKey, delay_s: float | None) -> None:
        """Ask for a pool to be looked at in so many seconds, instead of what was asked so before.

        Args:
            key: The pool.
            delay_s: The time; ``None`` for never.
        """
        due = self._due.pop(key, None)
        if due is not None:
            due.cancel()
        if delay_s is not None and not self._closed:
            self._due[key] = asyncio.get_running_loop().call_later(delay_s, self._come, key)

    async def drain(self) -> None:
        """Wait until nothing runs; what waits for its backoff is not waited for."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def close(self) -> None:
        """Take no more requests, and end what runs."""
        self._closed = True
        for handle in (*self._waiting.values(), *self._due.values()):
            handle.cancel()
        for task in self._running.values():
            task.cancel()
        await self.drain()

    def _start(self, key: PoolKey) -> None:
        task = asyncio.create_task(self._run(key), name=f"reconcile {key.namespace}/{key.name}")
        self._running[key] = task
        task.add_done_callback(lambda _: self._finished(key))

    async def _run(self, key: PoolKey) -> None:
        async with self._slots:
            self._again.discard(key)
            asked_at = self._asked_at.pop(key, None)
            if asked_at is not None:
                WAIT_SECONDS.observe(time.monotonic() - asked_at)
            succeeded = await self._work(key)
        if succeeded:
            self._failures.pop(key, None)
        else:
            self._failures[key] = self._failures.get(key, 0) + 1

    def _finished(self, key: PoolKey) -> None:
        self._running.pop(key, None)
        if self._closed:
            return
        failures = self._failures.get(key, 0)
        if failures:
            self._again.discard(key)
            self._asked_at.pop(key, None)
            delay = min(FIRST_BACKOFF_S * 2.0 ** (failures - 1), LONGEST_BACKOFF_S)
            self._waiting[key] = asyncio.get_running_loop().call_later(delay, self._retry, key)
        elif key in self._again:
            self._again.discard(key)
            self._start(key)

    def _come(self, key: PoolKey) -> None:
        self._due.pop(key, None)
        self.add(key)

    def _retry(self, key: PoolKey) -> None:
        self._waiting.pop(key, None)
        self.add(key)
