"""Clients that stream answers, in a closed loop or at given instants.

A tool of our own: locust and guidellm bring 22 and 30 packages more, and neither plays the same requests
to two servers in turns.
"""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from zerolayer_bench.claims.measure.server import Worker
from zerolayer_dev.models.builtin import NAME

TOKENS: Final = 16
LONG_EVERY: Final = 8
_LONG_WORDS: Final = 200
_WORDS: Final = ("river", "house", "light", "stone", "paper", "window", "garden", "winter", "ship", "road")
_TIMEOUT: Final = aiohttp.ClientTimeout(total=300)


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, and whether it is one of the long ones."""

    text: str
    long: bool


def questions(seed: str, count: int) -> list[Question]:
    """Prompts of about 60 tokens, every eighth of about 270; no two begin with the same chunk."""
    dice = random.Random(seed)
    return [_question(dice, long=number % LONG_EVERY == LONG_EVERY - 1) for number in range(count)]


def _question(dice: random.Random, *, long: bool) -> Question:
    words = " ".join(dice.choices(_WORDS, k=_LONG_WORDS if long else 5))
    return Question(f"{dice.getrandbits(24)}: write a story about {words}.", long)


async def closed_loop(worker: Worker, asked: Sequence[Question], *, clients: int) -> list[dict[str, Any]]:
    """Each client asks the next question as soon as it has its answer, until all are answered."""
    turns, began, found = iter(asked), time.monotonic(), list[dict[str, Any]]()

    async def client(session: aiohttp.ClientSession) -> None:
        for question in turns:
            found.append(await _ask(session, worker, question, began))

    async with _session() as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return found


async def open_loop(
    worker: Worker, asked: Sequence[Question], instants: Sequence[float]
) -> list[dict[str, Any]]:
    """Asks at the given seconds from now, whether or not earlier answers have come."""
    began = time.monotonic()

    async def later(session: aiohttp.ClientSession, question: Question, instant: float) -> dict[str, Any]:
        await asyncio.sleep(max(0.0, began + instant - time.monotonic()))
        return await _ask(session, worker, question, began)

    async with _session() as session:
        return await asyncio.gather(
            *(later(session, question, at) for question, at in zip(asked, instants, strict=False))
        )


def poisson(seed: str, rate: float, seconds: float) -> list[float]:
    """Instants of a Poisson process of so many a second."""
    dice, now, found = random.Random(seed), 0.0, list[float]()
    while (now := now + dice.expovariate(rate)) < seconds:
        found.append(now)
    return found


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=_TIMEOUT, connector=aiohttp.TCPConnector(limit=0))


async def _ask(
    session: aiohttp.ClientSession, worker: Worker, question: Question, origin: float
) -> dict[str, Any]:
    """When it was asked and ended, in seconds of the block, and the milliseconds to its first text."""
    body = {
        "model": NAME,
        "max_tokens": TOKENS,
        "stream": True,
        "messages": [{"role": "user", "content": question.text}],
    }
    headers = {"anthropic-version": "2023-06-01", "anthropic-sampling-intent": "balanced"}
    began, first, tokens = time.monotonic(), None, 0
    async with session.post(f"{worker.url}/v1/messages", json=body, headers=headers) as response:
        response.raise_for_status()
        async for line in response.content:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                if event["type"] == "content_block_delta" and first is None:
                    first = time.monotonic()
                if event["type"] == "message_delta":
                    tokens = event["usage"]["output_tokens"]
    ended = time.monotonic()
    return {
        "at": round(began - origin, 4),
        "ended": round(ended - origin, 4),
        # An answer of invisible tokens has no text; it has come when it has ended.
        "ttft_ms": round(1000 * ((first or ended) - began), 2),
        "tokens": tokens,
        "long": question.long,
    }
