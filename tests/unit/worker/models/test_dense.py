from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.packing import pack
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

CPU = torch.device("cpu")
SEQUENCES = [(5, 6, 7, 8, 9), (5, 6, 7, 40), (5, 6, 90, 91, 92, 93, 94, 95), (5, 6)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> DenseModel:
    return load_dense(make_tiny_model(tmp_path_factory.mktemp("tiny")))


def served_scores(folder: Path, ids: tuple[int, ...]) -> torch.Tensor:
    """What the server's own forward pass makes of a sequence's last token."""
    config = read_config(folder)
    model = Transformer(config, load_tensors(folder, config, torch.float32, CPU), length=64)
    hidden = model.prefill(ids, 0, [0, 1], KvCache(config, 2, torch.float32, CPU))
    return torch.cat([tile.scores(hidden) for tile in model.head.tiles], dim=1)[0].log_softmax(dim=-1)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"attention_bias": True, "tie_word_embeddings": True},
        {"architectures": ["Qwen2ForCausalLM"], "num_key_value_heads": 1},
        {"architectures": ["Qwen3ForCausalLM"], "head_dim": 32},
    ],
    ids=["llama", "llama-biased-tied", "qwen2", "qwen3"],
)
@torch.inference_mode()
def test_a_pack_says_what_the_server_says_of_each_sequence(tmp_path: Path, overrides: dict[str, Any]) -> None:
    folder = make_tiny_model(tmp_path, **overrides)
    model, packed = load_dense(folder), pack(SEQUENCES)
    logprobs = model.logprobs(model.hidden(packed))
    for index, sequence in enumerate(SEQUENCES):
        row = packed.rows(index, len(sequence) - 1, len(sequence))
        torch.testing.assert_close(logprobs[row][0], served_scores(folder, sequence), atol=1e-4, rtol=1e-4)


def test_gradients_of_a_pack_are_those_of_its_sequences(tiny: DenseModel) -> None:
    name = "model.layers.0.input_layernorm.weight"
    frozen = tiny.tensors[name]

    def gradient(sequences: list[tuple[int, ...]]) -> torch.Tensor:
        gain = frozen.clone().requires_grad_()
        model, packed = DenseModel(tiny.config, tiny.tensors | {name: gain}), pack(sequences)
        states = model.hidden(packed)
        ends = torch.cat([packed.rows(i, len(s) - 1, len(s)) for i, s in enumerate(sequences)])
        states[ends].square().sum().backward()
        assert gain.grad is not None
        return gain.grad

    alone = sum(gradient([sequence]) for sequence in SEQUENCES)
    torch.testing.assert_close(gradient(SEQUENCES), alone, atol=1e-3, rtol=1e-4)


tokens = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(st.lists(tokens, min_size=1, max_size=5))
def test_a_pack_holds_every_token_once_and_what_is_shared_once(sequences: list[list[int]]) -> None:
    packed = pack(sequences)
    for index, sequence in enumerate(sequences):
        rows = packed.rows(index, 0, len(sequence))
        assert packed.ids[rows].tolist() == sequence
        assert packed.positions[rows].tolist() == list(range(len(sequence)))
    shared = next(
        (i for i, column in enumerate(zip(*sequences, strict=False)) if len(set(column)) > 1),
        min(map(len, sequences)),
    )
    assert len(packed.ids) == shared + sum(len(each) - shared for each in sequences)
    assert packed.grid.flatten()[packed.places].tolist() == list(range(len(packed.ids)))
