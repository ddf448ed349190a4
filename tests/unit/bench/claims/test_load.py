"""The clients, against a server that streams one word."""

import asyncio
import json
from collections.abc import AsyncIterator
from statistics import mean

import pytest
from aiohttp import web

from zerolayer_bench.claims.measure.load import LONG_EVERY, closed_loop, open_loop, poisson, questions
from zerolayer_bench.claims.measure.server import Worker


class Streamer:
    """Answers with two events once it may, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = 0
        self.most_open = 0
        self.may_answer = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((await request.json())["messages"][0]["content"])
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        response = web.StreamResponse()
        await response.prepare(request)
        await self.may_answer.wait()
        for event in (
            {"type": "content_block_delta", "delta": {"text": "word"}},
            {"type": "message_delta", "usage": {"output_tokens": 3}},
        ):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.open -= 1
        return response


@pytest.fixture
def streamer() -> Streamer:
    return Streamer()


@pytest.fixture
async def worker(streamer: Streamer) -> AsyncIterator[Worker]:
    app = web.Application()
    app.router.add_post("/v1/messages", streamer.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield Worker(f"http://127.0.0.1:{runner.addresses[0][1]}", "", 0)
    await runner.cleanup()


async def test_a_closed_loop_asks_everything_once(worker: Worker, streamer: Streamer) -> None:
    streamer.may_answer.set()
    asked = questions("a seed", 2 * LONG_EVERY)
    found = await closed_loop(worker, asked, clients=3)
    assert sorted(streamer.asked) == sorted(question.text for question in asked)
    assert streamer.most_open <= 3
    assert sum(request["long"] for request in found) == 2
    assert all(request["tokens"] == 3 and request["ttft_ms"] > 0 for request in found)
    assert all(request["at"] <= request["ended"] for request in found)


async def test_an_open_loop_does_not_wait_for_answers(worker: Worker, streamer: Streamer) -> None:
    asked = questions("a seed", 5)
    load = asyncio.create_task(open_loop(worker, asked, [0.0] * 5))
    async with asyncio.timeout(30):
        while streamer.open < 5:  # noqa: ASYNC110  # the server tells only by its count
            await asyncio.sleep(0.001)
    streamer.may_answer.set()
    assert len(await load) == 5


def test_questions_and_instants_are_those_of_their_seed() -> None:
    assert questions("a", 20) == questions("a", 20) != questions("b", 20)
    assert len({question.text[:12] for question in questions("a", 20)}) == 20
    assert poisson("a", 3.0, 50.0) == poisson("a", 3.0, 50.0) != poisson("b", 3.0, 50.0)


def test_arrivals_have_their_rate() -> None:
    counts = [len(poisson(str(seed), 2.0, 100.0)) for seed in range(50)]
    assert mean(counts) == pytest.approx(200, rel=0.05)
    instants = poisson("a", 2.0, 100.0)
    assert instants == sorted(instants)
    assert 0 <= instants[0] < instants[-1] < 100
