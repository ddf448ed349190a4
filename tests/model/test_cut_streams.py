"""Clients that go away at random moments, in every way that a connection ends, on the real engine."""

import asyncio
import json
import random
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.testing.serving import running
from zerolayer_worker.engine.api import EngineEvent, Failed, Finished, GenerationRequest
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.server.app import serving_app
from zerolayer_worker.server.clients import client_of
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics

SLOTS = 8
CLIENTS = 16
"""More than slots, so that half of them are cut while they wait."""

LONG_PROMPT = "once upon a time " * 120
ENDINGS = ("close", "reset", "half")

pytestmark = [pytest.mark.promise("cancel")]


@dataclass
class Cut:
    """What the engine saw of one request.

    Attributes:
        entered: set when the engine got it.
        left: set when its slot was given back, or it ended by itself.
        gone_at: when its client ended the connection.
        learnt_at: when the engine was told.
        steps: turns of the engine's loop from there until it held nothing of it.
        ended: whether it was complete before that.
    """

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    gone_at: float = 0.0
    learnt_at: float = 0.0
    steps: int = 0
    ended: bool = False


class Watched:
    """The engine, with an eye on how requests leave it."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.cuts: dict[str, Cut] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def holds(self, request: GenerationRequest) -> bool:
        return any(key.endswith(f":{request.request_id}") for key in list(self._engine._loop._sequences))

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[EngineEvent]:
        cut = self.cuts[request.client]
        events = self._engine.generate(request)
        try:
            cut.entered.set()
            async for event in events:
                cut.ended = isinstance(event, Finished | Failed)
                yield event
        finally:
            cut.learnt_at = asyncio.get_running_loop().time()
            before = self._engine.stats().steps
            await events.aclose()
            while self.holds(request):  # noqa: ASYNC110 - the engine's thread sets no event
                await asyncio.sleep(0)
            cut.steps = self._engine.stats().steps - before
            cut.left.set()


@pytest.fixture(scope="module")
def loaded(demo_model: Path) -> Any:
    engine = load_engine(
        EngineConfig(demo_model, "m", max_batch_size=SLOTS, max_queue=64, consistency_share=0.0),
        lambda _stage: None,
    )
    yield engine
    engine.close()


@pytest.fixture
async def served(loaded: Any) -> AsyncIterator[tuple[str, Watched]]:
    watched = Watched(loaded)
    lifecycle = Lifecycle(30)
    lifecycle.loaded(watched, {})  # type: ignore[arg-type]
    serving = Serving(watched, lifecycle, Metrics(lifecycle))  # type: ignore[arg-type]
    async with running(serving_app(serving), serving.identity) as (url, _):
        yield url, watched


async def connect(url: str, user: str, dice: random.Random, *, stream: bool, text: str) -> Any:
    body = {
        "model": "m",
        "max_tokens": 64,
        "stream": stream,
        "messages": [{"role": "user", "content": text}],
        "metadata": {"user_id": user},
        "temperature": dice.choice([0, 1]),
    }
    content = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(
        b"POST /v1/messages HTTP/1.1\r\nhost: w\r\ncontent-length: %d\r\n\r\n" % len(content) + content
    )
    return reader, writer


def end(writer: asyncio.StreamWriter, how: str) -> None:
    if how == "half":
        writer.write_eof()
        return
    if how == "reset":
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()


async def cut_one(url: str, watched: Watched, number: int) -> Cut:
    """Asks, waits for a random moment, ends the connection, and waits until the engine is rid of it."""
    dice = random.Random(number)
    moment = dice.choice(["token", "token", "token", "queued", "prefill", "whole"])
    cut = watched.cuts[client_of({}, str(number))] = Cut()
    text = LONG_PROMPT if moment == "prefill" else "Tell me a very long story."
    reader, writer = await connect(url, str(number), dice, stream=moment != "whole", text=text)
    await cut.entered.wait()
    if moment == "token":
        for _ in range(dice.randint(1, 8)):
            await reader.readuntil(b"content_block_delta\ndata")
    elif moment in ("prefill", "whole"):
        steps = watched.stats().steps
        later = steps + dice.randint(1, 6)
        while watched.stats().steps < later and not cut.ended:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
    cut.gone_at = asyncio.get_running_loop().time()
    end(writer, dice.choice(ENDINGS))
    await cut.left.wait()
    writer.close()
    return cut


async def cut_all(served: tuple[str, Watched], figures: Callable[..., None], count: int) -> None:
    url, watched = served
    numbers = iter(range(count))

    async def client() -> list[Cut]:
        return [await cut_one(url, watched, number) for number in numbers]

    clients = await asyncio.gather(*(client() for _ in range(CLIENTS)))
    stats = watched.stats()
    cuts = [cut for each in clients for cut in each if not cut.ended]
    waits = sorted(max(0.0, cut.learnt_at - cut.gone_at) for cut in cuts)
    figures(
        streams=count,
        cut=len(cuts),
        most_steps=max(cut.steps for cut in cuts),
        told_p50_ms=round(1000 * waits[len(waits) // 2], 1),
        told_p99_ms=round(1000 * waits[int(0.99 * len(waits))], 1),
        running=stats.running,
        waiting=stats.waiting,
        pages_used=stats.kv_pages_used,
    )
    assert len(cuts) > 0.8 * count
    assert max(cut.steps for cut in cuts) <= 1
    assert (stats.running, stats.waiting, stats.kv_pages_used) == (0, 0, 0)


@pytest.mark.timeout(600)
async def test_a_hundred_streams_cut(served: Any, figures: Callable[..., None]) -> None:
    """100 streams cut while they wait, in their prompt, at a random token: all back within one step."""
    await cut_all(served, figures, 100)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_a_thousand_streams_cut(served: Any, figures: Callable[..., None]) -> None:
    """1 000 streams cut while they wait, in their prompt, at a random token: all back within one step."""
    await cut_all(served, figures, 1000)
