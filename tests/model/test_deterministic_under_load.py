"""One deterministic request among random traffic."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import AsyncAnthropic

PROMPT = "Explain in two sentences why the sky is blue."
REPEATS = 200
TOKENS = 24
ASKERS = 4
DISTURBERS = 3
TOPICS = ["a cat", "the sea", "an old clock", "spring rain", "a long train ride through many small towns"]


async def _deterministic(client: AsyncAnthropic, model: str, *, stream: bool) -> str:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": PROMPT}],
        "extra_headers": {"anthropic-sampling-intent": "deterministic"},
    }
    if not stream:
        return (await client.messages.create(**asked)).content[0].text
    async with client.messages.stream(**asked) as events:
        return "".join([text async for text in events.text_stream])


async def _disturb(client: AsyncAnthropic, model: str, dice: random.Random, done: asyncio.Event) -> int:
    """Asks for random things in random modes and lengths; some clients go away in the middle."""
    count = 0
    while not done.is_set():
        topic = " and ".join(dice.sample(TOPICS, dice.randint(1, 4))) * dice.randint(1, 3)
        intent = dice.choice([None, "deterministic", "balanced", "creative"])
        asked: dict[str, Any] = {
            "model": model,
            "max_tokens": dice.randint(1, 32),
            "messages": [{"role": "user", "content": f"Tell me about {topic}."}],
            "extra_headers": {"anthropic-sampling-intent": intent} if intent else {},
        }
        if dice.random() < 0.5:
            await client.messages.create(**asked)
        else:
            async with client.messages.stream(**asked) as events:
                async for _ in events.text_stream:
                    if dice.random() < 0.05:
                        break
        count += 1
    return count


@pytest.mark.promise("deterministic-under-load")
@pytest.mark.timeout(1200)
async def test_one_request_repeated_under_load(worker_process: Any, figures: Callable[..., None]) -> None:
    """A deterministic request repeated 200 times among random traffic, streamed and not, has one answer."""
    began = time.monotonic()
    numbers = iter(range(REPEATS))
    answers: Counter[str] = Counter()
    done = asyncio.Event()
    async with AsyncAnthropic(
        base_url=worker_process.url, api_key="any", max_retries=0, timeout=600
    ) as client:

        async def ask() -> None:
            for number in numbers:
                answers[await _deterministic(client, worker_process.model, stream=number % 2 == 1)] += 1

        alone = await _deterministic(client, worker_process.model, stream=False)
        traffic = [
            asyncio.create_task(_disturb(client, worker_process.model, random.Random(seed), done))
            for seed in range(DISTURBERS)
        ]
        await asyncio.gather(*(ask() for _ in range(ASKERS)))
        done.set()
        others = sum(await asyncio.gather(*traffic))
    assert answers.total() == REPEATS
    assert others > 0
    assert dict(answers) == {alone: REPEATS}
    figures(
        answers=REPEATS,
        distinct=len(answers),
        other_requests=others,
        tokens_each=TOKENS,
        seconds=round(time.monotonic() - began, 1),
    )
