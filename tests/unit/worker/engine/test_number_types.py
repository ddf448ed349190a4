"""Engines that hold their weights in each of the types, and decode through each kind of kernels."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.engine import assemble
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls

PROMPTS = tuple(tuple(range(first, first + 20)) for first in (3, 40, 80))
TOKENS = 5
Scores = dict[tuple[int | None, int], Tensor]
"""By prompt and position, fp32 `[vocab_size]` each."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Heads of 32, as the native library needs them; no answer ends by itself."""
    shape = {"num_attention_heads": 2, "num_key_value_heads": 1, "eos_token_id": 100_000}
    return make_tiny_model(tmp_path_factory.mktemp("model"), **shape)


class Steadfast:
    """Chooses the same token whatever the scores are, and keeps these by prompt and position."""

    second_passes = 0

    def __init__(self, head: Head) -> None:
        self._head = head
        self.scores: Scores = {}

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        scores = torch.cat([tile.scores(hidden) for tile in self._head.tiles], dim=1)
        for row, each in zip(scores, controls, strict=False):
            self.scores[each.seed, each.position] = row.clone()
        return [Choice(65)] * len(controls)


async def answer(engine: TorchEngine, seed: int, prompt: tuple[int, ...]) -> None:
    params = SamplingParams(temperature=1.0, seed=seed)
    async for _ in engine.generate(GenerationRequest("r", prompt, TOKENS, params)):
        pass


def scores(config: EngineConfig) -> Scores:
    """Of an answer's tokens the first is scored by prefill, the others are by decode steps."""
    made: list[Steadfast] = []

    def steadfast(head: Head, *_others: Any) -> Steadfast:
        made.append(Steadfast(head))
        return made[0]

    with mock.patch.object(assemble, "sampler_for", steadfast):
        engine = load_engine(config, lambda _stage: None)
    assert engine.unavailable_intents == {}
    made[0].scores.clear()

    async def together() -> None:
        await asyncio.gather(*(answer(engine, seed, prompt) for seed, prompt in enumerate(PROMPTS)))

    try:
        asyncio.run(together())
        return made[0].scores
    finally:
        engine.close()


def farthest(found: Scores, wanted: Scores) -> float:
    """The greatest difference of all tokens' scores, as a share of what was wanted."""
    assert found.keys() == wanted.keys()
    assert len(wanted) == len(PROMPTS) * TOKENS
    return max(float((found[key] - wanted[key]).norm() / wanted[key].norm()) for key in wanted)


@pytest.mark.parametrize("quantization", ["none", "int8", "int4"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_both_kinds_of_kernels_score_alike(
    tiny_config: EngineConfig, folder: Path, dtype: str, quantization: str
) -> None:
    config = replace(tiny_config, model_path=folder, dtype=dtype, quantization=quantization)
    found, wanted = (scores(replace(config, kernels=kernels)) for kernels in ("native", "torch"))
    assert farthest(found, wanted) < {"float32": 1e-4, "bfloat16": 0.05}[dtype]


def test_bfloat16_scores_are_about_those_of_float32(tiny_config: EngineConfig, folder: Path) -> None:
    config = replace(tiny_config, model_path=folder)
    assert farthest(scores(replace(config, dtype="bfloat16")), scores(config)) < 0.05
