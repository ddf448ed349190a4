"""The native decode step against the one through torch, and its bits against themselves."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, pages_for
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.native.library import Kernels, matrix_of
from zerolayer_worker.models.native.model import NativeProduct, unsupported
from zerolayer_worker.models.quantised import Format, blocked, expand
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

CPU = torch.device("cpu")
CHUNK, LENGTH = 64, 640
SHAPE = {
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": LENGTH,
}
# Around the ends of vectors, pages and spans.
LENGTHS = (1, 3, 31, 32, 33, 255, 256, 257, 513)
FORMATS = list(Format)


class Served:
    """A tiny model with sequences of `LENGTHS` in its cache, whose pages lie in any order."""

    def __init__(
        self,
        folder: Path,
        storage: Storage,
        kernels: Kernels | None,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        config = read_config(folder)
        tensors = load_tensors(folder, config, dtype, CPU)
        self.model = Transformer(config, tensors, length=LENGTH, storage=storage, kernels=kernels)
        needed = [pages_for(length + 1, 32) for length in LENGTHS]
        self.cache = KvCache(config, sum(needed), dtype, CPU)
        self.cache.keys.fill_(float("nan"))
        self.cache.values.fill_(float("nan"))
        order = iter(random.Random(seed).sample(range(sum(needed)), sum(needed)))
        self.tables = [[next(order) for _ in range(count)] for count in needed]
        for index, length in enumerate(LENGTHS):
            ids = torch.randint(0, 259, (length,), generator=torch.Generator().manual_seed(index)).tolist()
            for start in range(0, length, CHUNK):
                self.model.prefill(ids[start : start + CHUNK], start, self.tables[index], self.cache)

    def step(self, sequences: Sequence[int]) -> torch.Tensor:
        """The next token's final states of these sequences, `[rows, hidden]`."""
        return self.model.decode(
            [7 + index for index in sequences],
            [LENGTHS[index] for index in sequences],
            [self.tables[index] for index in sequences],
            self.cache,
        )


SHAPES: dict[str, dict[str, Any]] = {
    "llama": {},
    "biased": {"attention_bias": True},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3-wide-heads": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 64},
    "five-queries": {"num_attention_heads": 5, "num_key_value_heads": 1},
    "one-query": {"num_key_value_heads": 6},
    "unrotated": {"architectures": ["SmolLM3ForCausalLM"], "no_rope_layers": [1, 0]},
}


@pytest.mark.parametrize("shape", SHAPES)
@torch.inference_mode()
def test_states_are_those_of_the_step_through_torch(tmp_path: Path, one: Kernels, shape: str) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE | SHAPES[shape])
    native = Served(folder, Storage(native=True), one)
    torch_only = Served(folder, Storage(), None, seed=1)
    rows = range(len(LENGTHS))
    torch.testing.assert_close(native.step(rows), torch_only.step(rows), rtol=1e-4, atol=1e-5)
    for index in rows:
        keys, expected = (
            served.cache.keys[:, served.tables[index][-1], :, LENGTHS[index] % 32]
            for served in (native, torch_only)
        )
        torch.testing.assert_close(keys, expected, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_bfloat16_weights_and_cache(tmp_path: Path, one: Kernels) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    native = Served(folder, Storage(native=True), one, torch.bfloat16)
    exact = Served(folder, Storage(), None)
    rows = range(len(LENGTHS))
    found, expected = native.step(rows), exact.step(rows)
    assert torch.corrcoef(torch.stack((found.flatten(), expected.flatten())))[0, 1] > 0.999


@pytest.mark.parametrize("form", [Format.INT8, Format.INT4])
@torch.inference_mode()
def test_prompts_and_answers_use_the_same_quantised_weights(
    tmp_path: Path, one: Kernels, form: Format
) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    native = Served(folder, Storage(layers=form, head=Format.INT8, native=True), one)
    torch_only = Served(folder, Storage(layers=form, head=Format.INT8), None)
    rows = range(len(LENGTHS))
    states = native.step(rows)
    torch.testing.assert_close(states, torch_only.step(rows), rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(native.model.head.tiles, torch_only.model.head.tiles, strict=True):
        torch.testing.assert_close(ours.scores(states), theirs.scores(states), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", FORMATS)
@torch.inference_mode()
def test_a_sequences_bits_depend_on_nothing_beside_it(
    tmp_path: Path, kernels: Kernels, one: Kernels, form: Format
) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    dtype = torch.bfloat16 if form is Format.BFLOAT16 else torch.float32
    kept = form if form in {Format.INT8, Format.INT4} else None
    alone = Served(folder, Storage(layers=kept, native=True), one, dtype)
    expected = torch.cat([alone.step([index]) for index in range(len(LENGTHS))])
    source = random.Random(1)
    served = Served(folder, Storage(layers=kept, native=True), kernels, dtype, seed=2)
    for count in (1, 2, 3, 4, 5, 7, 9):
        rows = source.sample(range(len(LENGTHS)), count)
        assert torch.equal(served.step(rows), expected[rows]), rows


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("outputs", [1, 48, 259, 1000])
@torch.inference_mode()
def test_products(kernels: Kernels, form: Format, outputs: int) -> None:
    source = torch.Generator().manual_seed(outputs)
    weight = blocked(torch.randn(outputs, 96, generator=source), form)
    rows = torch.randn(11, 96, generator=source)
    product = NativeProduct(kernels, weight)
    found = product(rows)
    torch.testing.assert_close(
        found.double(), rows.double() @ expand(weight).double().T, rtol=1e-4, atol=1e-4
    )
    for count in (1, 2, 3, 5, 8):
        assert torch.equal(product(rows[:count]), found[:count])


@torch.inference_mode()
def test_a_bias_is_added(one: Kernels) -> None:
    weight, bias = blocked(torch.eye(32)[:6], Format.FLOAT32), torch.arange(6.0)
    for rows in (1, 2):
        out = torch.empty(rows, 6)
        one.multiply(matrix_of(weight, bias), torch.ones(rows, 32), out)
        assert out.tolist() == [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]] * rows


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({}, None),
        ({"head_dim": 48}, "head_dim 48 is no multiple of 32"),
        ({"head_dim": 288}, "head_dim 288"),
        ({"hidden_size": 100}, "hidden_size 100 is no multiple of 32"),
        ({"intermediate_size": 90}, "intermediate_size 90"),
    ],
)
def test_shapes_that_the_kernels_do_not_have(
    tmp_path: Path, overrides: dict[str, Any], reason: str | None
) -> None:
    found = unsupported(read_config(make_tiny_model(tmp_path, **SHAPE | overrides)))
    assert found is None if reason is None else reason in str(found)
