"""Deterministic requests repeated in changing batches, with and without cached beginnings."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from zerolayer_bench.claims.measure.engines import answer, serving
from zerolayer_bench.claims.plan import REPEATS_EACH
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.torch_engine import TorchEngine

_TOKENS = 6
_ASKERS = 12
_DISTURBERS = 3
# So few that beginnings are now and then thrown out and computed again.
_CACHED_TOKENS = 8192
_DETERMINISTIC = SamplingParams(intent=Intent.DETERMINISTIC)
_TOPICS = ("a cat", "the sea", "an old clock", "spring rain", "a train ride", "many small towns")
_TEXTS = {
    "short": "Hi.",
    "question": "Why is the sky blue?",
    "longer than a cached chunk": "Tell me about " + ", ".join(_TOPICS * 7) + ".",
}


def measure(piece: str) -> dict[str, Any]:
    """Answers of one start of the engine, as text of their token ids, with how often each came.

    The other requests differ from start to start.
    """
    with serving(kv_cache_tokens=_CACHED_TOKENS) as engine:
        answers, others = asyncio.run(_repeated(engine, random.Random(piece)))
    return {"answers": answers, "others": others, "fingerprint": engine.fingerprint}


async def _repeated(engine: TorchEngine, dice: random.Random) -> tuple[dict[str, dict[str, int]], int]:
    prompts = {name: _encoded(engine, text) for name, text in _TEXTS.items()}
    found = {name: Counter[str]() for name in prompts}
    turns = iter(sorted(list(prompts) * (REPEATS_EACH // len(prompts)), key=lambda _: dice.random()))
    done = asyncio.Event()
    disturbed = [asyncio.create_task(_disturb(engine, dice, done)) for _ in range(_DISTURBERS)]
    await asyncio.gather(*(_ask(engine, turns, prompts, found) for _ in range(_ASKERS)))
    done.set()
    others = sum(await asyncio.gather(*disturbed))
    return {name: dict(each) for name, each in found.items()}, others


async def _ask(
    engine: TorchEngine,
    turns: Iterator[str],
    prompts: dict[str, tuple[int, ...]],
    found: dict[str, Counter[str]],
) -> None:
    for name in turns:
        tokens = await answer(engine, GenerationRequest("repeat", prompts[name], _TOKENS, _DETERMINISTIC))
        found[name][" ".join(map(str, tokens))] += 1


async def _disturb(engine: TorchEngine, dice: random.Random, done: asyncio.Event) -> int:
    """Asks for other things at other lengths, so that no two steps have the same batch."""
    count = 0
    while not done.is_set():
        text = "Tell me about " + " and ".join(dice.choices(_TOPICS, k=dice.randint(1, 20))) + "."
        params = SamplingParams(intent=dice.choice(tuple(Intent)), seed=dice.getrandbits(32))
        await answer(engine, GenerationRequest("other", _encoded(engine, text), dice.randint(1, 24), params))
        count += 1
    return count


def _encoded(engine: TorchEngine, text: str) -> tuple[int, ...]:
    return engine.encoder.encode_chat([{"role": "user", "content": text}])
