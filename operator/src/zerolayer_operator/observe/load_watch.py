"""Asks about the load of the pools that are followed, each at its own pace."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.observe.load import STEP_S, ObservedLoad
from zerolayer_operator.observe.load_source import LoadSource, LoadTarget

log = logging.getLogger(__name__)

NOT_FOLLOWED: Final = (
    "the operator has not begun to look at the pool's load; wait a minute, or look at its log"
)

_Key = tuple[str, str]


@dataclass(slots=True)
class _Followed:
    target: LoadTarget
    source: LoadSource
    task: asyncio.Task[None] | None = None


class LoadWatch:
    """A task for each pool, so that a source that hangs holds up nobody but the pools it is asked about.

    Args:
        asked: Told of a pool, by namespace and name, each time that its source was asked.
        pace_s: Seconds between two questions about a pool.
    """

    def __init__(
        self, asked: Callable[[str, str], None] = lambda _namespace, _pool: None, pace_s: float = STEP_S
    ) -> None:
        self._asked = asked
        self._pace_s = pace_s
        self._followed: dict[_Key, _Followed] = {}

    def follow(self, target: LoadTarget, source: LoadSource) -> None:
        """Has the source asked about these workers from now on, instead of what there was for the pool."""
        key = (target.namespace, target.pool)
        followed = self._followed.get(key)
        if followed is None:
            followed = self._followed[key] = _Followed(target, source)
            followed.task = asyncio.create_task(self._keep_asking(followed), name=f"load of {'/'.join(key)}")
        elif followed.source is not source:
            followed.source.forget(*key)
        followed.target, followed.source = target, source

    def load(self, target: LoadTarget) -> ObservedLoad:
        """The load of a pool that is followed; never waits."""
        followed = self._followed.get((target.namespace, target.pool))
        return (
            ObservedLoad(unknown=NOT_FOLLOWED, pending=True)
            if followed is None
            else followed.source.load(target)
        )

    def forget(self, namespace: str, pool: str) -> None:
        """Asks about a pool no more; nothing happens if it was not followed."""
        followed = self._followed.pop((namespace, pool), None)
        if followed is not None:
            if followed.task is not None:
                followed.task.cancel()
            followed.source.forget(namespace, pool)

    async def close(self) -> None:
        """Asks about no pool any more."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for key in list(self._followed):
            self.forget(*key)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_asking(self, followed: _Followed) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self._ask(followed)
            # What a slow answer has made late is not made up for.
            due = max(due + self._pace_s, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _ask(self, followed: _Followed) -> None:
        target = followed.target
        with _lived_through(target, "the pool's load can't be asked for"):
            await followed.source.refresh(target)
        with _lived_through(target, "nothing can be made of the pool's load"):
            self._asked(target.namespace, target.pool)


@contextmanager
def _lived_through(target: LoadTarget, what: str) -> Generator[None]:
    """Logs what goes wrong: a task that ended would leave its pool unobserved for good."""
    try:
        yield
    except Exception:
        log.exception(what, extra={"namespace": target.namespace, "pool": target.pool})
