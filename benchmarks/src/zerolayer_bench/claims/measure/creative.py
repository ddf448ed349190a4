"""How often creative answers to one open prompt are the same, beside balanced ones."""

import asyncio
from typing import Any

from zerolayer_bench.claims.measure.engines import ROWS, serving
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import SamplingParams
from zerolayer_worker.routing.effect import OPEN_PROMPTS
from zerolayer_worker.routing.effect import measure as effect

# Of balanced answers as many as tell them from creative ones.
ANSWERS = {Intent.CREATIVE: 100, Intent.BALANCED: 16}


def measure(piece: str) -> dict[str, Any]:
    """Share of the pairs of answers to each prompt that have the same first 32 tokens, by intent."""
    prompts = [OPEN_PROMPTS[int(word) - 1] for word in piece.split() if word.isdigit()]

    async def share(prompt: str, intent: Intent, answers: int) -> float:
        params = SamplingParams(intent=intent, logprobs=0)
        found = await effect(engine, params, prompts=[prompt], answers=answers, at_once=ROWS)
        return found.same_pairs

    with serving() as engine:
        return {
            "prompts": {
                prompt: {
                    each.value: asyncio.run(share(prompt, each, count)) for each, count in ANSWERS.items()
                }
                for prompt in prompts
            }
        }
