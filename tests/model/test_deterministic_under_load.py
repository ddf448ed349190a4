"""Twenty deterministic requests again and again, among random traffic, on two workers."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from openai import AsyncOpenAI

pytestmark = [pytest.mark.promise("determinism")]

# Beyond whole chunks of 128 tokens, which are cached, most have few left: what is computed is decoding.
LENGTHS = (5, 8, 12, 16, 24, 33, 40, 48, 64, 100, 130, 136, 150, 260, 264, 270, 388, 400, 520, 600)
WORDS = (
    "the",
    "old",
    "river",
    "town",
    "had",
    "one",
    "clock",
    "and",
    "three",
    "mills",
    "where",
    "people",
    "met",
)
ASKERS = 12
SAMPLE = 200
WHOLE = int(os.environ.get("ZEROLAYER_ANSWERS", "30000"))


@dataclass(frozen=True)
class Question:
    """A prompt, and how many tokens are wanted."""

    prompt: str
    tokens: int


@dataclass
class Load:
    """Clients of several workers.

    Attributes:
        answers: how often each question, by its number, got each text.
        others: other requests that were answered.
        cut: streams whose clients went away in the middle.
    """

    clients: Sequence[AsyncOpenAI]
    model: str
    questions: Sequence[Question]
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    others: int = 0
    cut: int = 0

    async def ask(self, number: int) -> None:
        """One answer that counts, and now and then something else before: all of it told by the number."""
        dice = random.Random(number)
        if dice.random() < 0.2:
            await self._disturb(dice)
        which = dice.randrange(len(self.questions))
        asked = self._request(self.questions[which], "deterministic")
        client = dice.choice(self.clients)
        if dice.random() < 0.5:
            text = (await client.completions.create(**asked)).choices[0].text
        else:
            events = await client.completions.create(**asked, stream=True)
            text = "".join([event.choices[0].text async for event in events])
        self.answers[which, text] += 1

    async def _disturb(self, dice: random.Random) -> None:
        """A creative answer, or a stream of any intent that is cut."""
        wanted = Question(dice.choice(self.questions).prompt + " now", dice.randint(1, 12))
        client = dice.choice(self.clients)
        if dice.random() < 0.5:
            await client.completions.create(**self._request(wanted, "creative"))
            self.others += 1
            return
        intent = dice.choice(["deterministic", "balanced", "creative"])
        async with await client.completions.create(**self._request(wanted, intent), stream=True) as events:
            await anext(aiter(events))
        self.cut += 1

    def _request(self, question: Question, intent: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": question.prompt,
            "max_tokens": question.tokens,
            "extra_body": {"intent": intent},
        }


def question(length: int) -> Question:
    """A prompt of so many words, each of them a token, and 4 to 8 tokens to answer."""
    dice = random.Random(length)
    return Question(" ".join(dice.choices(WORDS, k=length)), 4 + length % 5)


@asynccontextmanager
async def load_on(replicas: Sequence[Any]) -> AsyncIterator[Load]:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                AsyncOpenAI(base_url=f"{each.url}/v1", api_key="any", max_retries=0, timeout=600)
            )
            for each in replicas
        ]
        yield Load(clients, replicas[0].model, [question(length) for length in LENGTHS])


async def repeat(replicas: Sequence[Any], count: int, figures: Callable[..., None]) -> None:
    """Asks until so many answers have come; there must be as many distinct ones as questions."""
    began = time.monotonic()
    numbers = iter(range(count))
    async with load_on(replicas) as load:

        async def client() -> None:
            for number in numbers:
                await load.ask(number)

        await asyncio.gather(*(client() for _ in range(ASKERS)))
    figures(
        answers=load.answers.total(),
        questions=len(LENGTHS),
        distinct=len(load.answers),
        replicas=len(replicas),
        creative=load.others,
        cut=load.cut,
        cached=[cached_share(each) for each in replicas],
        seconds=round(time.monotonic() - began, 1),
    )
    assert load.answers.total() == count
    assert load.others > 0
    assert load.cut > 0
    assert sorted(which for which, _ in load.answers) == list(range(len(LENGTHS)))


def cached_share(worker: Any) -> float:
    """Of the tokens of all prompts, the share that was cached."""
    lines = [line.partition(" ") for line in worker.metrics().splitlines()]
    counts = {name: float(value) for name, _, value in lines if name.startswith("zero_layer_prefix_cache_")}
    hits, queries = (counts[f"zero_layer_prefix_cache_{each}_tokens_total"] for each in ("hit", "query"))
    return round(hits / queries, 3)


@pytest.mark.timeout(600)
async def test_twenty_answers_under_load(replicas: Any, figures: Callable[..., None]) -> None:
    """200 answers to 20 prompts under random load, streamed and not, of two workers: 20 distinct ones."""
    await repeat(replicas, SAMPLE, figures)


@pytest.mark.long
@pytest.mark.timeout(5 * 3600)
async def test_thirty_thousand_answers_under_load(replicas: Any, figures: Callable[..., None]) -> None:
    """30 000 answers to 20 prompts under random load, streamed and not, of two workers: 20 distinct ones.

    `ZEROLAYER_ANSWERS` takes another number of answers.
    """
    await repeat(replicas, WHOLE, figures)
