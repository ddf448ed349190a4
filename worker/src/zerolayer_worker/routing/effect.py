"""What a router does to answers: how much they vary, and how likely the model finds what it said."""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import Engine, Failed, GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.sampling.router import route

OPEN_PROMPTS: Final = (
    "Tell me a short story.",
    "Suggest a name for a new coffee shop and say why.",
    "What should I do this weekend?",
    "Write a poem about the sea.",
    "Describe a city of the future.",
    "Invent a recipe with apples.",
    "Give me an idea for a birthday present.",
    "What might a cat think about all day?",
    "Write the first lines of a novel.",
    "Tell me something interesting.",
)
TOKENS: Final = 32
FIXED: Final = (0.7, 0.9, 1.1, 1.3)


@dataclass(frozen=True, slots=True)
class Effect:
    """Of the first tokens of many answers to each of some open prompts.

    Attributes:
        same_pairs: share of the pairs of answers to one prompt that are the same.
        perplexity: exp of the mean of -log p over the chosen tokens; p is the model's own, at temperature 1.
    """

    same_pairs: float
    perplexity: float


def steered() -> SamplingParams:
    """A creative request, whose parameters the engine's router decides."""
    return SamplingParams(intent=Intent.CREATIVE, logprobs=0)


def fixed(temperature: float) -> SamplingParams:
    """The same with creative's own min-p, at a temperature that does not move."""
    return SamplingParams(temperature=temperature, min_p=route(Intent.CREATIVE).min_p, logprobs=0)


async def measure(
    engine: Engine, params: SamplingParams, *, prompts: Sequence[str], answers: int, at_once: int
) -> Effect:
    """Asks each prompt `answers` times, with a seed of its own each time.

    Raises:
        RuntimeError: an answer failed.
    """
    gate = asyncio.Semaphore(at_once)

    async def ask(prompt: tuple[int, ...], seed: int) -> tuple[tuple[int, ...], float]:
        async with gate:
            return await _answer(
                engine, GenerationRequest("effect", prompt, TOKENS, replace(params, seed=seed))
            )

    encoded = [engine.encoder.encode_chat([{"role": "user", "content": text}]) for text in prompts]
    found = [await asyncio.gather(*(ask(prompt, seed) for seed in range(answers))) for prompt in encoded]
    same = sum(
        count * (count - 1) // 2 for each in found for count in Counter(tokens for tokens, _ in each).values()
    )
    pairs = len(prompts) * answers * (answers - 1) // 2
    tokens = sum(len(tokens) for each in found for tokens, _ in each)
    loss = -sum(logprob for each in found for _, logprob in each)
    return Effect(same / pairs if pairs else 0.0, math.exp(loss / max(1, tokens)))


async def _answer(engine: Engine, request: GenerationRequest) -> tuple[tuple[int, ...], float]:
    """An answer's tokens and the sum of their log-probabilities."""
    tokens: list[int] = []
    total = 0.0
    async for event in engine.generate(request):
        if isinstance(event, TextDelta):
            tokens += event.token_ids
            total += sum(each.logprob for each in event.logprobs)
        elif isinstance(event, Failed):
            raise RuntimeError(event.message)  # noqa: TRY004 - what came is an answer's end, not a wrong type
    return tuple(tokens), total
