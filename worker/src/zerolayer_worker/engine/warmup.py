"""Runs real requests of several lengths until their latency settles."""

import asyncio
import logging
import statistics
import time
from collections.abc import Sequence
from itertools import cycle

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import Engine, Failed, GenerationRequest, SamplingParams

_log = logging.getLogger(__name__)

_LENGTHS = (8, 64, 256)
# Every way to choose a token: the argmax, a nucleus, min-p.
_MODES = (
    SamplingParams(temperature=0.0),
    SamplingParams(intent=Intent.BALANCED),
    SamplingParams(intent=Intent.CREATIVE),
)
_MIN_ROUNDS = 2


class WarmupError(RuntimeError):
    """A warm-up request failed, or latency did not settle in time."""


def warm_up(
    engine: Engine, *, prompt: str | None, max_tokens: int, settle_ratio: float, timeout_s: float
) -> int:
    """Blocks until two successive rounds take about the same time; returns the number of rounds.

    Raises:
        WarmupError: a request failed, or `timeout_s` seconds were not enough.
    """
    return asyncio.run(
        _warm_up(engine, _prompts(engine, prompt, max_tokens), max_tokens, settle_ratio, timeout_s)
    )


async def _warm_up(
    engine: Engine, prompts: Sequence[tuple[int, ...]], max_tokens: int, settle_ratio: float, timeout_s: float
) -> int:
    deadline = time.monotonic() + timeout_s
    medians: list[float] = []
    while len(medians) < _MIN_ROUNDS or medians[-2] > settle_ratio * medians[-1]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise WarmupError(f"latency did not settle within {timeout_s:g} s")
        try:
            async with asyncio.timeout(left):
                latencies = [
                    await _latency(engine, GenerationRequest("warm-up", ids, max_tokens, mode))
                    for ids, mode in zip(prompts, cycle(_MODES), strict=False)
                ]
        except TimeoutError:
            raise WarmupError(f"latency did not settle within {timeout_s:g} s") from None
        medians.append(statistics.median(latencies))
        _log.info("warm-up round", extra={"median_seconds": round(medians[-1], 4)})
    return len(medians)


async def _latency(engine: Engine, request: GenerationRequest) -> float:
    began = time.monotonic()
    async for event in engine.generate(request):
        if isinstance(event, Failed):
            raise WarmupError(f"a warm-up request failed: {event.message}")
    return time.monotonic() - began


def _prompts(engine: Engine, text: str | None, max_tokens: int) -> list[tuple[int, ...]]:
    """Prompts of several lengths that fit, and the one that was asked for."""
    room = engine.info.max_model_len - max_tokens
    if room < 1:
        raise WarmupError(f"warm-up of {max_tokens} tokens does not fit into {engine.info.max_model_len}")
    lengths = sorted({min(room, length) for length in _LENGTHS})
    prompts = [tuple((7919 * (i + 1)) % engine.info.vocab_size for i in range(length)) for length in lengths]
    if text is not None:
        prompts.append(engine.encoder.encode_text(text)[:room])
    return [ids for ids in prompts if ids]
