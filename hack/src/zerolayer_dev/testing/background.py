"""What runs in a thread beside a test or a demo, so that whatever that waits for does not hold it up."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

Served = TypeVar("Served")

_PATIENCE_S = 30


@contextmanager
def in_background(served: AbstractAsyncContextManager[Served]) -> Iterator[Served]:
    """Enters an asynchronous context in an event loop of its own, and leaves it with the block."""
    entered, ended = Future[tuple[Served, asyncio.AbstractEventLoop]](), asyncio.Event()

    async def run() -> None:
        try:
            async with served as value:
                entered.set_result((value, asyncio.get_running_loop()))
                await ended.wait()
        except BaseException as error:
            if not entered.done():
                entered.set_exception(error)
            raise

    thread = threading.Thread(target=lambda: asyncio.run(run()), name=type(served).__name__)
    thread.start()
    value, loop = entered.result(_PATIENCE_S)
    try:
        yield value
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


@contextmanager
def repeated(action: Callable[[], object], *, every_s: float, name: str) -> Iterator[None]:
    """Does something at once, and again so many seconds after each time, for as long as the block lasts."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            action()
            stop.wait(every_s)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
