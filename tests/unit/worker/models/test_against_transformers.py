"""The forward pass beside that of `transformers`, on small random models of every family.

Tolerances. In fp32 both compute the same sums in another order, so that logits differ by some multiples of
2^-24 of the largest: 1e-4 of it are allowed, 30 to 200 times what was seen. In bfloat16 the results depend on
where each rounds; ours may be at most 1.5 times as far from `transformers` in fp32 as its own bfloat16 is.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import ConfigFile, read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

CPU = torch.device("cpu")
PROMPT, CHUNK, LENGTH = 80, 32, 100
TABLE = (3, 1, 4, 0, 2)
TOLERANCE = 1e-4
BFLOAT16_RATIO = 1.5

LINEAR = {"rope_type": "linear", "factor": 4.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
MISTRAL = {"architectures": ["MistralForCausalLM"], "sliding_window": None}
QWEN2 = {"architectures": ["Qwen2ForCausalLM"]}
QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "head_dim": 32}
SMOLLM3 = {"architectures": ["SmolLM3ForCausalLM"], "num_hidden_layers": 4, "pad_token_id": 0}
WINDOW = {"sliding_window": LENGTH, "use_sliding_window": True, "max_window_layers": 1}

CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-tied": {"tie_word_embeddings": True},
    "llama-without-groups": {"num_key_value_heads": 4},
    "llama-one-kv-head": {"num_key_value_heads": 1},
    "llama-narrow-heads": {"head_dim": 8},
    "llama-biased": {"attention_bias": True},
    "llama-linear": {"rope_scaling": LINEAR},
    "llama-llama3": {"rope_theta": 5e5, "rope_scaling": LLAMA3},
    "llama-llama3-new-spelling": {"rope_parameters": LLAMA3 | {"rope_theta": 5e5}},
    "llama-yarn": {"rope_scaling": YARN},
    "llama-yarn-other-ramp": {"rope_scaling": YARN | {"beta_fast": 4.0, "truncate": False}},
    "llama-yarn-mscale": {"rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.5}},
    "mistral": MISTRAL,
    "mistral-wide-heads": MISTRAL | {"head_dim": 32},
    "mistral-window": MISTRAL | {"sliding_window": LENGTH},
    "mistral-window-by-default": {"architectures": ["MistralForCausalLM"]},
    "qwen2": QWEN2,
    "qwen2-tied": QWEN2 | {"tie_word_embeddings": True},
    "qwen2-yarn": QWEN2 | {"rope_theta": 1e6, "rope_scaling": YARN},
    "qwen2-window": QWEN2 | WINDOW,
    "qwen3": QWEN3,
    "qwen3-tied": QWEN3 | {"tie_word_embeddings": True},
    "qwen3-head-dim-by-default": {"architectures": ["Qwen3ForCausalLM"]},
    "qwen3-biased-yarn": QWEN3 | {"attention_bias": True, "rope_scaling": YARN},
    "qwen3-window": QWEN3 | WINDOW,
    "smollm3": SMOLLM3,
    "smollm3-untied-list": SMOLLM3 | {"tie_word_embeddings": False, "no_rope_layers": [0, 1, 1, 0]},
}


def our_logits(folder: Path, ids: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Of the last token of each chunk of the prompt, and of every token after it."""
    config = read_config(folder)
    length = min(config.max_positions, 160)
    model = Transformer(config, load_tensors(folder, config, dtype, CPU), length=length)
    cache = KvCache(config, len(TABLE), dtype, CPU)
    states = [
        model.prefill(ids[start:end], start, TABLE, cache)
        for start, end in zip(chunk_starts(), chunk_ends(), strict=True)
    ]
    states += [model.decode([ids[at]], [at], [TABLE], cache) for at in range(PROMPT, len(ids))]
    return torch.cat([tile.scores(torch.cat(states)) for tile in model.head.tiles], dim=1)


def chunk_starts() -> list[int]:
    return list(range(0, PROMPT, CHUNK))


def chunk_ends() -> list[int]:
    return [min(start + CHUNK, PROMPT) for start in chunk_starts()]


def reference(folder: Path, dtype: torch.dtype) -> Any:
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    return (
        getattr(transformers, name).from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    )


def greedy_text(model: Any) -> list[int]:
    """A random prompt and what the reference's own `generate` says after it."""
    dice = torch.Generator().manual_seed(20)
    prompt = torch.randint(0, model.config.vocab_size, (1, PROMPT), generator=dice)
    return model.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=LENGTH - PROMPT,
        eos_token_id=None, pad_token_id=0,
    )[0].tolist()  # fmt: skip


def their_logits(model: Any, ids: list[int]) -> torch.Tensor:
    rows = [end - 1 for end in chunk_ends()] + list(range(PROMPT, len(ids)))
    return model(torch.tensor([ids])).logits[0, rows].float()


def distance(some: torch.Tensor, others: torch.Tensor) -> float:
    return float((some - others).abs().max() / others.abs().max())


@pytest.mark.parametrize("overrides", CASES.values(), ids=CASES.keys())
@torch.inference_mode()
def test_logits_and_greedy_tokens_are_those_of_transformers(
    tmp_path: Path, overrides: dict[str, Any]
) -> None:
    folder = make_tiny_model(tmp_path, **overrides)
    theirs = reference(folder, torch.float32)
    ids = greedy_text(theirs)
    expected = their_logits(theirs, ids)

    found = our_logits(folder, ids, torch.float32)

    assert distance(found, expected) < TOLERANCE
    # The last chunk's end chooses the first new token, each new one the next.
    chosen = found[len(chunk_ends()) - 1 : -1].argmax(dim=1).tolist()
    assert chosen == ids[PROMPT:]

    rounded = distance(their_logits(reference(folder, torch.bfloat16), ids), expected)
    assert distance(our_logits(folder, ids, torch.bfloat16), expected) < BFLOAT16_RATIO * rounded


@torch.inference_mode()
def test_a_checkpoint_in_several_files_is_the_same_model(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "one")
    whole = our_logits(folder, list(range(LENGTH)), torch.float32)
    split = make_tiny_model(tmp_path / "several")
    tensors = load_file(split / "model.safetensors")
    (split / "model.safetensors").unlink()
    names = {name: f"model-{1 + number % 3:05}-of-00003.safetensors" for number, name in enumerate(tensors)}
    for file in set(names.values()):
        save_file({name: tensors[name] for name in tensors if names[name] == file}, split / file)
    (split / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))

    assert torch.equal(our_logits(split, list(range(LENGTH)), torch.float32), whole)
    expected = their_logits(reference(split, torch.float32), list(range(LENGTH)))
    assert distance(whole, expected) < TOLERANCE


@torch.inference_mode()
def test_beyond_the_window_full_attention_would_be_another_model(tmp_path: Path) -> None:
    """Why a context ends where the window does: one token more and the reference says something else."""
    ids = torch.randint(0, 259, (1, LENGTH + 20), generator=torch.Generator().manual_seed(1))
    logits = [
        reference(
            make_tiny_model(tmp_path / str(window), **MISTRAL | {"sliding_window": window}), torch.float32
        )(ids).logits[0]
        for window in (LENGTH, None)
    ]
    torch.testing.assert_close(logits[0][:LENGTH], logits[1][:LENGTH])
    assert distance(logits[0][LENGTH:], logits[1][LENGTH:]) > 100 * TOLERANCE


NEUTRAL = {
    # Of training, of keeping what `transformers` itself keeps, and of text that is not the model's.
    "attention_dropout", "bos_token_id", "initializer_range", "pad_token_id", "use_cache",
    # Of an older training set-up; `transformers` reads it no more.
    "pretraining_tp",
    # Of every model of `transformers`, whatever its architecture.
    "chunk_size_feed_forward", "dtype", "id2label", "is_encoder_decoder", "label2id", "output_attentions",
    "output_hidden_states", "problem_type", "return_dict", "transformers_version",
}  # fmt: skip


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3", "SmolLM3"])
def test_every_key_that_transformers_knows_is_read_or_does_not_matter(family: str) -> None:
    """A release of `transformers` that reads another key fails here, and someone has to look at it."""
    known = vars(getattr(transformers, f"{family}Config")())
    unread = {key for key in known if not key.startswith("_")} - ConfigFile.model_fields.keys() - NEUTRAL
    assert unread == set()
