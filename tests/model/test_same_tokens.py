"""Greedy answers beside those of `transformers` on the same weights."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import Finished, GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.config import read_config

TOKENS = 64
LENGTHS = (5, 8, 12, 17, 24, 33, 45, 60, 64, 65, 90, 120, 128, 129, 160, 200, 256, 300, 400, 500)
MARGIN = 1e-4
END = 2
PIECES = (
    "The river had been rising since noon, and nobody in the village slept that night.",
    "def mean(values):\n    return sum(values) / len(values)\n",
    "Water boils at a lower temperature on a mountain because the air pressure is lower there.",
    "Dear Sir or Madam, I am writing to you about the bicycle I bought last week.",
    "1, 1, 2, 3, 5, 8, 13, 21,",
    "In 1869 Dmitri Mendeleev arranged the elements by their atomic weight and left gaps.",
    'She laughed. "You never could keep a secret," she said, and closed the door.',
    "Ingredients: two eggs, a cup of flour, a pinch of salt, half a cup of milk.",
    "The committee decided, after a long debate, to postpone the vote until spring.",
    "SELECT name, count(*) FROM visits GROUP BY name ORDER BY 2 DESC;",
)


@pytest.fixture(scope="module")
def engine(demo_model: Path) -> Iterator[TorchEngine]:
    config = EngineConfig(
        demo_model,
        "demo",
        dtype="float32",
        max_model_len=1024,
        warmup_max_tokens=1,
        warmup_settle_ratio=100.0,
    )
    loaded = load_engine(config, lambda _stage: None)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def reference(demo_model: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(demo_model, dtype=torch.float32).eval()


def prompts(engine: TorchEngine) -> list[tuple[int, ...]]:
    """One of each length; what they say is arbitrary, and the same in every run."""
    dice, found = random.Random(20), []
    for length in LENGTHS:
        ids: tuple[int, ...] = ()
        while len(ids) < length:
            ids += engine.encoder.encode_text(dice.choice(PIECES) + " ")
        found.append(ids[:length])
    return found


async def greedy(engine: TorchEngine, prompt: Sequence[int]) -> list[int]:
    params = SamplingParams(intent=Intent.DETERMINISTIC)
    found: list[int] = []
    ended_early = False
    async for event in engine.generate(GenerationRequest("r", tuple(prompt), TOKENS, params)):
        if isinstance(event, TextDelta):
            found += event.token_ids
        elif isinstance(event, Finished):
            ended_early = event.output_tokens < TOKENS
    return [*found, END] if ended_early else found


@torch.inference_mode()
def near_ties(reference: PreTrainedModel, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
    """How far the answer's token lies below the reference's best, wherever it is not the best.

    One pass over prompt and answer: as long as every token was the reference's choice, what the reference
    says next is just what its own greedy decoding would say.
    """
    scores = reference(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1].double()
    below = scores.max(dim=1).values - scores.gather(1, torch.tensor(answer)[:, None])[:, 0]
    best = scores.argmax(dim=1)
    return [float(gap) for gap, i, token in zip(below, best, answer, strict=True) if i != token]


@pytest.mark.promise("same-tokens")
@pytest.mark.timeout(1200)
async def test_greedy_tokens_are_those_of_transformers(
    engine: TorchEngine, reference: PreTrainedModel, figures: Callable[..., None]
) -> None:
    """Greedy tokens equal those of `transformers` in fp32: 20 prompts of 5 to 500 tokens, 64 tokens each."""
    began, compared, gaps = time.monotonic(), 0, []
    for prompt in prompts(engine):
        answer = await greedy(engine, prompt)
        gaps += near_ties(reference, prompt, answer)
        compared += len(answer)
    figures(
        prompts=len(LENGTHS),
        tokens_compared=compared,
        different=sum(gap >= MARGIN for gap in gaps),
        near_ties=sum(gap < MARGIN for gap in gaps),
        seconds=round(time.monotonic() - began, 1),
    )
    assert compared > 0.9 * TOKENS * len(LENGTHS)
    assert [gap for gap in gaps if gap >= MARGIN] == []


@pytest.mark.promise("same-tokens")
@pytest.mark.timeout(600)
async def test_generate_of_transformers_says_the_same(
    engine: TorchEngine, reference: PreTrainedModel, figures: Callable[..., None]
) -> None:
    """The reference's own `generate`, with its cache, gives the same 64 tokens to a chat prompt."""
    prompt = engine.encoder.encode_chat([{"role": "user", "content": "Why is the sky blue?"}])
    answer = await greedy(engine, prompt)
    with torch.inference_mode():
        ids = torch.tensor([prompt])
        generated = reference.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=TOKENS
        )
    figures(tokens=len(answer))
    assert generated[0, len(prompt) :].tolist() == answer


def test_the_end_token_is_the_one_assumed(demo_model: Path) -> None:
    assert read_config(demo_model).eos_ids == {END}
