"""The first requests of a fresh process, whose engine warmed up or did not."""

import asyncio
import time
from typing import Any

from zerolayer_bench.claims.measure.engines import answer, serving
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.torch_engine import TorchEngine

REQUESTS = 60
_TOKENS = 8
_PROMPT = "Request {}: why is the sky blue, and why is it red in the evening?"


def measure(piece: str) -> dict[str, Any]:
    """Milliseconds of each request in turn, and the seconds of each stage of the start."""
    way = piece.rsplit(maxsplit=1)[-1]
    with serving(warmup=way == "with") as engine:
        return {"way": way, "ms": asyncio.run(_requests(engine)), "stages": dict(engine.stages)}


async def _requests(engine: TorchEngine) -> list[float]:
    intents, found = tuple(Intent), list[float]()
    for number in range(REQUESTS):
        text = _PROMPT.format(number)
        prompt = engine.encoder.encode_chat([{"role": "user", "content": text}])
        params = SamplingParams(intent=intents[number % len(intents)], seed=number)
        began = time.perf_counter()
        await answer(engine, GenerationRequest("warm-up", prompt, _TOKENS, params))
        found.append(round(1000 * (time.perf_counter() - began), 3))
    return found
