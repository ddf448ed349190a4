"""Native prompts against those through torch, and their bits against themselves."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, pages_for
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.native import build
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.models.quantised import Format
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

CPU = torch.device("cpu")
LENGTH = 448
NATIVE = Storage(native=True, prompts=True)
SHAPE: dict[str, Any] = {
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": LENGTH,
}
SHAPES: dict[str, dict[str, Any]] = {
    "llama": {},
    "biased": {"attention_bias": True},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3-wide-heads": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 64},
    "five-queries": {"num_attention_heads": 5, "num_key_value_heads": 1},
    "one-query": {"num_key_value_heads": 6},
    "unrotated": {"architectures": ["SmolLM3ForCausalLM"], "no_rope_layers": [1, 0]},
    "columns-beyond-a-slab": {"hidden_size": 160, "intermediate_size": 288},
}
# Of chunks: around the ends of vectors, panels, pages and spans of keys, and beyond what runs at once.
LENGTHS = (1, 2, 7, 8, 9, 16, 17, 23, 24, 25, 31, 33, 47, 48, 49, 64, 100, 127, 128, 129, 257, 300)


class Served:
    """A tiny model and a cache of pages that lie in any order and hold what must not matter."""

    def __init__(
        self,
        folder: Path,
        storage: Storage,
        kernels: Kernels | None,
        *,
        dtype: torch.dtype = torch.float32,
        page: int = 32,
        seed: int = 0,
    ) -> None:
        config = read_config(folder)
        tensors = load_tensors(folder, config, dtype, CPU)
        self.model = Transformer(config, tensors, length=LENGTH, storage=storage, kernels=kernels)
        self.cache = KvCache(config, LENGTH // page, dtype, CPU, page=page)
        self.table = random.Random(seed).sample(range(LENGTH // page), LENGTH // page)

    @torch.inference_mode()
    def prompt(self, length: int, cuts: Sequence[int] = ()) -> tuple[torch.Tensor, torch.Tensor]:
        """The last token's state, and keys and values `[2, layers, kv_heads, length, head_dim]`."""
        self.cache.keys.fill_(float("nan"))
        self.cache.values.fill_(float("nan"))
        ids = torch.randint(0, 259, (LENGTH,), generator=torch.Generator().manual_seed(0)).tolist()
        states = [
            self.model.prefill(ids[start:end], start, self.table, self.cache)
            for start, end in pairwise((0, *cuts, length))
        ]
        pages = self.table[: pages_for(length, self.cache.page)]
        kept = torch.stack((self.cache.keys, self.cache.values))[:, :, pages]
        return states[-1], kept.transpose(2, 3).flatten(3, 4)[:, :, :, :length]


@pytest.mark.parametrize("shape", SHAPES)
def test_states_keys_and_values_are_those_of_torch(tmp_path: Path, one: Kernels, shape: str) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE | SHAPES[shape])
    native, exact = Served(folder, NATIVE, one), Served(folder, Storage(), None, seed=1)
    for length in (1, 25, 300):
        for found, expected in zip(native.prompt(length), exact.prompt(length), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    groups=st.tuples(st.integers(1, 3), st.integers(1, 5)),
    widths=st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([32, 64])),
    bias=st.booleans(),
    page=st.sampled_from([4, 16, 32, 64]),
    prompt=st.integers(2, LENGTH).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(1, n - 1), max_size=3))
    ),
)
def test_any_shape_and_any_chunks(
    tmp_path_factory: pytest.TempPathFactory,
    one: Kernels,
    groups: tuple[int, int],
    widths: tuple[int, int, int],
    bias: bool,
    page: int,
    prompt: tuple[int, set[int]],
) -> None:
    shape = {
        "num_key_value_heads": groups[0],
        "num_attention_heads": groups[0] * groups[1],
        "hidden_size": 32 * widths[0],
        "intermediate_size": 32 * widths[1],
        "head_dim": widths[2],
        "attention_bias": bias,
    }
    folder = make_tiny_model(tmp_path_factory.mktemp("model"), **SHAPE | shape)
    native = Served(folder, NATIVE, one, page=page)
    exact = Served(folder, Storage(), None, page=page, seed=1)
    length, cuts = prompt
    for found, expected in zip(native.prompt(length, sorted(cuts)), exact.prompt(length), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("form", list(Format))
def test_a_tokens_bits_depend_on_those_before_it_alone(
    tmp_path: Path, kernels: Kernels, one: Kernels, form: Format
) -> None:
    """Not on the chunk's other tokens, where it is cut, what was there before it, pages or threads."""
    folder = make_tiny_model(tmp_path, **SHAPE)
    storage = replace(NATIVE, layers=form if form in {Format.INT8, Format.INT4} else None)
    dtype = torch.bfloat16 if form is Format.BFLOAT16 else torch.float32
    whole = Served(folder, storage, one, dtype=dtype)
    served = Served(folder, storage, kernels, dtype=dtype, page=16, seed=2)
    _, longest = whole.prompt(LENGTHS[-1])
    source = random.Random(form)
    for length in LENGTHS:
        state, kept = whole.prompt(length)
        assert torch.equal(kept, longest[:, :, :, :length]), length
        cuts = sorted(source.sample(range(1, length), min(length - 1, source.randrange(3))))
        for found, expected in zip(served.prompt(length, cuts), (state, kept), strict=True):
            assert torch.equal(found, expected), (length, cuts)


@pytest.mark.parametrize("form", [Format.INT8, Format.INT4])
def test_quantised_weights_are_those_of_torch(tmp_path: Path, one: Kernels, form: Format) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    native = Served(folder, replace(NATIVE, layers=form), one)
    exact = Served(folder, Storage(layers=form), None)
    for found, expected in zip(native.prompt(150), exact.prompt(150), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_bfloat16_weights_and_cache(tmp_path: Path, one: Kernels) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    native = Served(folder, NATIVE, one, dtype=torch.bfloat16)
    exact = Served(folder, Storage(), None)
    for found, expected in zip(native.prompt(150, [70]), exact.prompt(150), strict=True):
        pair = torch.stack((found.flatten().float(), expected.flatten()))
        assert torch.corrcoef(pair)[0, 1] > 0.999


def test_the_width_of_the_cpus_vectors_changes_no_bit(
    tmp_path: Path, one: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    expected = Served(folder, NATIVE, one).prompt(200)
    levels = build.levels()
    for level in levels[levels.index(build.best_level()) + 1 :]:
        monkeypatch.setattr(build, "best_level", lambda level=level: level)
        other = Kernels(1)
        assert level in other.name
        for found, same in zip(Served(folder, NATIVE, other).prompt(200), expected, strict=True):
            assert torch.equal(found, same)
        other.close()


def test_pages_that_the_kernels_do_not_have(tmp_path: Path, one: Kernels) -> None:
    served = Served(make_tiny_model(tmp_path, **SHAPE), NATIVE, one, page=2)
    with pytest.raises(ValueError, match="pages of 2 tokens"):
        served.prompt(5)


def test_weights_are_held_once(tmp_path: Path, one: Kernels) -> None:
    folder = make_tiny_model(tmp_path, **SHAPE)
    config = read_config(folder)
    model = Transformer(config, load_tensors(folder, config, torch.float32, CPU), length=8, storage=NATIVE)
    with pytest.raises(ValueError, match="native passes only"), torch.inference_mode():
        model.prefill([1], 0, [0], KvCache(config, 1, torch.float32, CPU))
    assert (model.step_kernels, model.prompt_kernels) == ("torch", "torch")
    tensors = load_tensors(folder, config, torch.float32, CPU)
    native = Transformer(config, tensors, length=8, storage=NATIVE, kernels=one)
    assert native.prompt_kernels == native.step_kernels == one.name
