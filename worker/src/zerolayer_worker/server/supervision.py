"""Runs the work on one answer beside what may end it early."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from zerolayer_worker.server import limits

ResultT = TypeVar("ResultT")


class ClientGoneError(Exception):
    """The client closed its connection, or stopped reading."""


class CutOffError(Exception):
    """The drain's time is over."""


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def supervise(
    work: Coroutine[Any, Any, ResultT],
    receive: Receive,
    cut: asyncio.Event,
    on_silence: Callable[[], Awaitable[None]] | None = None,
) -> ResultT:
    """Awaits `work`; cancels it, and waits until it is cancelled, when the client goes or time is up.

    Args:
        work: produces the answer; cancelling it closes the engine's generator.
        receive: ASGI's; the body has been read.
        cut: set when what is still open has to end.
        on_silence: called every `limits.PING_INTERVAL_S` seconds.

    Raises:
        ClientGoneError: the client closed its connection.
        CutOffError: `cut` was set.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnect(receive))
    over = asyncio.create_task(cut.wait())
    watched: set[asyncio.Task[Any]] = {task, gone, over}
    try:
        while True:
            done, _ = await asyncio.wait(
                watched, timeout=limits.PING_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED
            )
            if task in done:
                return task.result()
            if gone in done:
                raise ClientGoneError
            if over in done:
                raise CutOffError
            if on_silence is not None:
                await on_silence()
    finally:
        for each in watched:
            each.cancel()
        await asyncio.gather(*watched, return_exceptions=True)
