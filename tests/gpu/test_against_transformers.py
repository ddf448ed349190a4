"""Tokens and logits on a GPU beside those of `transformers` there; tolerances as on CPUs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda")
PROMPT, LENGTH, TABLE = 80, 112, (3, 1, 4, 0)
TOLERANCE, BFLOAT16_RATIO = 1e-4, 1.5
CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-without-groups": {"num_key_value_heads": 4},
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": None},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 32},
}


@pytest.fixture(params=[*CASES, "smollm2-135m"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param in CASES:
        return make_tiny_model(tmp_path, **CASES[request.param])
    return request.getfixturevalue("demo_model")


def reference(folder: Path, dtype: torch.dtype) -> Any:
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, name).from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    return model.to(GPU).eval()


def our_logits(folder: Path, ids: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Of the prompt's last token, and of every one after it, which decode steps compute."""
    config = read_config(folder)
    tensors = load_tensors(folder, config, dtype, GPU)
    model = Transformer(config, tensors, length=LENGTH, storage=Storage(paged=True))
    cache = KvCache(config, 1 + max(TABLE), dtype, GPU)
    states = [model.prefill(ids[:PROMPT], 0, TABLE, cache)]
    states += [model.decode([ids[at]], [at], [TABLE], cache) for at in range(PROMPT, len(ids))]
    return torch.cat([tile.scores(torch.cat(states)) for tile in model.head.tiles], dim=1)


def distance(some: torch.Tensor, others: torch.Tensor) -> float:
    return float((some - others).abs().max() / others.abs().max())


@pytest.mark.promise("gpu")
@torch.inference_mode()
def test_tokens_on_a_gpu_are_those_of_transformers(folder: Path) -> None:
    """Greedy tokens on a GPU are those of transformers in fp32; in bf16 logits are as close as its own."""
    theirs = reference(folder, torch.float32)
    dice = torch.Generator().manual_seed(20)
    prompt = torch.randint(0, theirs.config.vocab_size, (1, PROMPT), generator=dice).to(GPU)
    ids = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=LENGTH - PROMPT,
        eos_token_id=None, pad_token_id=0,
    )[0].tolist()  # fmt: skip
    whole = torch.tensor([ids], device=GPU)
    expected = theirs(whole).logits[0, PROMPT - 1 :].float()

    found = our_logits(folder, ids, torch.float32)

    assert distance(found, expected) < TOLERANCE
    assert found[:-1].argmax(dim=1).tolist() == ids[PROMPT:]
    rounded = distance(reference(folder, torch.bfloat16)(whole).logits[0, PROMPT - 1 :].float(), expected)
    assert distance(our_logits(folder, ids, torch.bfloat16), expected) < BFLOAT16_RATIO * rounded
