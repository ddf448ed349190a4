"""The demo's model gives an answer the same tokens and log-probabilities whatever becomes of its pages."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from zerolayer_worker.engine.api import Finished, GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine

LENGTHS = (5, 20, 31, 64)
TOKENS = 100
PARAMS = SamplingParams(temperature=0.0, logprobs=0)
POOL = 384
"""Twelve pages; the four answers that run at once end with nineteen."""


@pytest.fixture(scope="module")
def engine(demo_model: Path) -> Iterator[TorchEngine]:
    config = EngineConfig(
        demo_model,
        "demo",
        dtype="float32",
        max_batch_size=4,
        kv_cache_tokens=POOL,
        consistency_share=0.0,
        warmup_settle_ratio=1000.0,
    )
    loaded = load_engine(config, lambda _stage: None)
    yield loaded
    assert loaded.stats().kv_pages_used == 0
    loaded.close()


async def answer(engine: TorchEngine, length: int) -> tuple[list[tuple[int, float]], Finished]:
    """Tokens with their log-probabilities, which differ where any bit of a hidden state does."""
    prompt = tuple((7919 * (i + 1)) % 49152 for i in range(length))
    found: list[tuple[int, float]] = []
    async for event in engine.generate(GenerationRequest("r", prompt, TOKENS, PARAMS)):
        if isinstance(event, TextDelta):
            found += [(each.token_id, each.logprob) for each in event.logprobs]
        elif isinstance(event, Finished):
            return found, event
    raise AssertionError


async def test_preemption_changes_no_bit(engine: TorchEngine) -> None:
    alone = [await answer(engine, length) for length in LENGTHS]
    assert engine.stats().preemptions == 0
    together = await asyncio.gather(*(answer(engine, length) for length in LENGTHS * 2))
    assert engine.stats().preemptions > 0
    assert [tokens for tokens, _ in together] == [tokens for tokens, _ in alone * 2]


async def test_a_prefix_hit_changes_no_bit(engine: TorchEngine) -> None:
    first, missed = await answer(engine, 280)
    second, hit = await answer(engine, 280)
    assert (missed.cached_tokens, hit.cached_tokens) == (0, 256)
    assert first == second
