"""What it costs a request that the one before it had another intent."""

import asyncio
import random
import time
from typing import Any

from zerolayer_bench.claims.measure.engines import answer, serving
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.torch_engine import TorchEngine

REQUESTS = 1200
_WARM = 40
_TOKENS = 2
_PROMPT = "Name three rivers."


def measure(_piece: str) -> dict[str, Any]:
    """Milliseconds of every request of a conversation, with its intent and that of the one before."""
    with serving(max_batch_size=1) as engine:
        return {"requests": asyncio.run(_conversation(engine)), "tokens": _TOKENS}


async def _conversation(engine: TorchEngine) -> list[dict[str, Any]]:
    """Half of the requests keep the intent of the one before: alternating and constant in one run."""
    dice, intents = random.Random(1), tuple(Intent)
    prompt = engine.encoder.encode_chat([{"role": "user", "content": _PROMPT}])
    before, found = intents[0], list[dict[str, Any]]()
    for number in range(_WARM + REQUESTS):
        others = [intent for intent in intents if intent != before]
        intent = before if dice.random() < 0.5 else dice.choice(others)
        request = GenerationRequest("switch", prompt, _TOKENS, SamplingParams(intent=intent, seed=number))
        began = time.perf_counter()
        await answer(engine, request)
        took = 1000 * (time.perf_counter() - began)
        if number >= _WARM:
            found.append({"intent": intent.value, "switched": intent != before, "ms": round(took, 4)})
        before = intent
    return found
