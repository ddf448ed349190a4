from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from zerolayer_dev.testing.tiny_model import TINY, make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

CPU = torch.device("cpu")
LENGTH = 160
TABLES = fixed_tables(6, LENGTH)
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def open_model(
    folder: Path, sequences: int = 4, dtype: torch.dtype = torch.float32
) -> tuple[Transformer, KvCache]:
    config = read_config(folder)
    model = Transformer(config, load_tensors(folder, config, dtype, CPU), length=LENGTH)
    return model, KvCache(config, TABLES[sequences - 1][-1] + 1, dtype, CPU)


def scores(model: Transformer, hidden: torch.Tensor) -> torch.Tensor:
    return torch.cat([tile.scores(hidden) for tile in model.head.tiles], dim=1)


def token_ids(count: int, seed: int = 0) -> list[int]:
    return torch.randint(0, 259, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"attention_bias": True, "tie_word_embeddings": True, "rope_parameters": LLAMA3},
        {"architectures": ["MistralForCausalLM"], "num_key_value_heads": 1},
        {"architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True},
        {"architectures": ["Qwen3ForCausalLM"], "head_dim": 32},
    ],
    ids=["llama", "llama-biased-llama3-tied", "mistral", "qwen2", "qwen3"],
)
@torch.inference_mode()
def test_scores_equal_those_of_transformers(tmp_path: Path, overrides: dict[str, Any]) -> None:
    folder = make_tiny_model(tmp_path, **overrides)
    name = (TINY | overrides)["architectures"][0]
    reference = getattr(transformers, name).from_pretrained(folder, dtype=torch.float32).eval()
    ids = token_ids(100)
    expected = reference(torch.tensor([ids])).logits[0]
    model, cache = open_model(folder)

    found = {
        63: model.prefill(ids[:64], 0, TABLES[2], cache),
        79: model.prefill(ids[64:80], 64, TABLES[2], cache),
    } | {at: model.decode([ids[at]], [at], [TABLES[2]], cache) for at in range(80, 100)}

    for position, hidden in found.items():
        torch.testing.assert_close(scores(model, hidden)[0], expected[position], rtol=0, atol=1e-4)


@torch.inference_mode()
def test_bfloat16_stays_near_float32(tmp_path: Path) -> None:
    folder, ids = make_tiny_model(tmp_path), token_ids(30)
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        model, cache = open_model(folder, dtype=dtype)
        model.prefill(ids, 0, TABLES[0], cache)
        found.append(scores(model, model.decode([7], [30], [TABLES[0]], cache))[0])
    assert torch.corrcoef(torch.stack(found))[0, 1] > 0.995


@torch.inference_mode()
def test_a_sequence_has_the_same_bits_in_every_batch(tmp_path: Path) -> None:
    model, cache = open_model(make_tiny_model(tmp_path), sequences=6)
    lengths = [1, 5, 63, 64, 65, 130]

    def step(batch: list[int]) -> torch.Tensor:
        tables = [TABLES[index] for index in batch]
        return model.decode([i + 40 for i in batch], [lengths[i] for i in batch], tables, cache)

    for index, length in enumerate(lengths):
        model.prefill(token_ids(length, seed=index), 0, TABLES[index], cache)
    alone = [step([index])[0] for index in range(6)]
    for batch in ([0, 1], [5, 0], [3, 4, 5], [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]):
        assert all(torch.equal(row, alone[index]) for index, row in zip(batch, step(batch), strict=True))


@torch.inference_mode()
def test_what_a_page_held_before_does_not_matter(tmp_path: Path) -> None:
    model, cache = open_model(make_tiny_model(tmp_path), sequences=2)
    ids = token_ids(40)
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    first = model.prefill(ids, 0, TABLES[0], cache)
    cache.keys[:, list(TABLES[1])] = 1e30
    cache.values[:, list(TABLES[1])] = -1e30
    assert torch.equal(first, model.prefill(ids, 0, TABLES[1], cache))
    first, second = (model.decode([3], [40], [table], cache) for table in TABLES[:2])
    assert torch.equal(first, second)


@torch.inference_mode()
def test_rows_that_only_fill_up_change_nothing(tmp_path: Path) -> None:
    model, cache = open_model(make_tiny_model(tmp_path))
    model.prefill(token_ids(20), 0, TABLES[0], cache)
    alone = model.decode([9], [20], [TABLES[0]], cache)
    before = cache.keys.clone()
    filled = model.decode([9, 0, 0, 0], [20, 0, 0, 0], [TABLES[0]], cache)
    assert torch.equal(filled[:1], alone)
    assert torch.equal(cache.keys[:, 0, :, :21], before[:, 0, :, :21])  # the tokens that are there
