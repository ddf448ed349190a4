"""Runs real requests of several lengths until their latency settles."""

import asyncio
import logging
import statistics
import time
from collections.abc import Sequence

from zerolayer_worker.engine.api import Engine, Failed, GenerationRequest, SamplingParams

_log = logging.getLogger(__name__)

_SHARES = (0.02, 0.1, 0.25)
_LONGEST = 512
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
                latencies = [await _latency(engine, ids, max_tokens) for ids in prompts]
        except TimeoutError:
            raise WarmupError(f"latency did not settle within {timeout_s:g} s") from None
        medians.append(statistics.median(latencies))
        _log.info("warm-up round", extra={"median_seconds": round(medians[-1], 4)})
    return len(medians)


async def _latency(engine: Engine, prompt_ids: tuple[int, ...], max_tokens: int) -> float:
    request = GenerationRequest("warm-up", prompt_ids, max_tokens, SamplingParams(temperature=0.0))
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
    lengths = sorted({max(1, min(_LONGEST, int(room * share))) for share in _SHARES})
    prompts = [tuple((7919 * (i + 1)) % engine.info.vocab_size for i in range(length)) for length in lengths]
    if text is not None:
        prompts.append(engine.encoder.encode_text(text)[:room])
    return [ids for ids in prompts if ids]
