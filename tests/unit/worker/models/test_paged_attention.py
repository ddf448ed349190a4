"""The paged kernels beside torch's attention: interpreted on CPUs, compiled on GPUs (`make test-gpu`).

Both compute the same sums in another order, in fp32.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.attention import attend_rows, row_pages
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.paged_attention import attend_paged
from zerolayer_worker.models.step_rows import step_rows
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LAYER, LONGEST = 1, 70
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SHAPES = [(4, 2, 16), (3, 1, 8), (2, 2, 24), (9, 3, 64), (17, 1, 16)]
"""Heads, heads of keys and values, and their width."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@dataclass(frozen=True)
class Case:
    """Sequences with their last token's query, key and value, and all that came before in pages."""

    cache: KvCache
    lengths: list[int]
    tables: list[list[int]]
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor

    def found(self, rows: list[int], fill: int = 0) -> torch.Tensor:
        """What the kernels make of these rows, and of some more that fill up."""
        step = step_rows(
            [0] * (len(rows) + fill),
            [self.lengths[row] - 1 for row in rows] + [0] * fill,
            [self.tables[row] for row in rows],
            page=self.cache.page,
            device=DEVICE,
        )
        taken = [torch.cat((each[rows], each[:1].expand(fill, -1, -1))) for each in (self.q, self.k, self.v)]
        return attend_paged(*taken, cache=self.cache, layer=LAYER, step=step)

    def expected(self) -> torch.Tensor:
        places = row_pages([length - 1 for length in self.lengths], self.tables, self.cache)
        return attend_rows(self.q, self.k, self.v, cache=self.cache, layer=LAYER, where=places)


def case(
    base: ModelConfig,
    lengths: list[int],
    shape: tuple[int, int, int] = (4, 2, 16),
    page: int = 8,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Case:
    """What is read by mistake shows: it is no number."""
    heads, kv_heads, dim = shape
    config = replace(base, heads=heads, kv_heads=kv_heads, head_dim=dim)
    dice = torch.Generator().manual_seed(seed)
    each = -(-LONGEST // page)
    cache = KvCache(config, each * len(lengths), dtype, DEVICE, page=page)
    order = torch.randperm(cache.pages).tolist()
    tables = [[order.pop() for _ in range(-(-length // page))] for length in lengths]
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    for length, table in zip(lengths, tables, strict=True):
        for place in range(length - 1):
            for stored in (cache.keys, cache.values):
                drawn = torch.randn(kv_heads, dim, generator=dice)
                stored[LAYER, table[place // page], :, place % page] = drawn.to(DEVICE, dtype)
    rows = len(lengths)
    q = torch.randn(rows, heads, dim, generator=dice).to(DEVICE)
    k, v = (torch.randn(rows, kv_heads, dim, generator=dice).to(DEVICE, dtype) for _ in range(2))
    return Case(cache, lengths, tables, q, k, v)


@pytest.fixture(scope="module")
def base(tiny: Path) -> ModelConfig:
    return read_config(tiny)


@pytest.mark.promise("triton")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_paged_attention_is_that_of_torch(
    base: ModelConfig, shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    """Paged attention of decode steps is torch's, over lengths, groups of heads, pages and types."""
    made = case(base, [1, 8, 9, 63, 64, 65, LONGEST], shape, dtype=dtype)
    rows = list(range(len(made.lengths)))
    found = made.found(rows)
    torch.testing.assert_close(found, made.expected(), **CLOSE)


@given(
    lengths=st.lists(st.integers(1, LONGEST), min_size=1, max_size=4),
    shape=st.sampled_from(SHAPES[:3]),
    page=st.sampled_from([1, 4, 8, 32]),
    seed=st.integers(0, 99),
)
@settings(max_examples=12)
def test_any_lengths_and_pages(
    base: ModelConfig, lengths: list[int], shape: tuple[int, int, int], page: int, seed: int
) -> None:
    made = case(base, lengths, shape, page, seed=seed)
    torch.testing.assert_close(made.found(list(range(len(lengths)))), made.expected(), **CLOSE)


@pytest.mark.promise("triton")
def test_a_row_attends_alike_in_any_company(base: ModelConfig, figures: Any) -> None:
    """A row's attention has the same bits alone, in any batch, at any place and in any pages."""
    lengths = [1, 31, 64, LONGEST]
    alone: list[torch.Tensor] = []
    compared = 0
    for page in (8, 32):
        made = case(base, lengths, page=page)
        alone = alone or [made.found([row])[0] for row in range(len(lengths))]
        for rows in ([3], [0, 1, 2, 3], [3, 1], [2, 3, 0], [1, 1, 3]):
            for fill in (0, 4):
                found = made.found(rows, fill)
                assert all(torch.equal(each, alone[row]) for row, each in zip(rows, found, strict=False))
                compared += len(rows)
    figures(device=DEVICE.type, compared=compared)


def test_rows_that_fill_up_are_zero_and_leave_the_pages_alone(base: ModelConfig) -> None:
    made = case(base, [5, 9])
    before = made.cache.keys.clone()
    found = made.found([], fill=3)
    assert not found.any()
    assert torch.equal(made.cache.keys.nan_to_num(7), before.nan_to_num(7))


def test_rows_of_one_sequence_see_each_other(base: ModelConfig) -> None:
    """Several known tokens in one step give each the bits it has alone."""
    made = case(base, [1] * 12)
    table = [4, 2]

    def found(rows: list[int]) -> torch.Tensor:
        step = step_rows(rows, rows, [table] * len(rows), page=made.cache.page, device=DEVICE)
        taken = (made.q[rows], made.k[rows], made.v[rows])
        return attend_paged(*taken, cache=made.cache, layer=0, step=step)

    one_by_one = torch.cat([found([row]) for row in range(12)])
    made.cache.keys[0].fill_(float("nan"))
    made.cache.values[0].fill_(float("nan"))
    assert torch.equal(found(list(range(12))), one_by_one)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@torch.inference_mode()
def test_a_model_decodes_through_pages_as_through_torch(tiny: Path, dtype: torch.dtype) -> None:
    """With a tolerance of what the types' own rounding makes of the sums' other order."""
    config = read_config(tiny)
    found = []
    for storage in (Storage(), Storage(paged=True)):
        model = Transformer(config, load_tensors(tiny, config, dtype, DEVICE), length=96, storage=storage)
        cache = KvCache(config, 8, dtype, DEVICE)
        prompt = [(7 * place) % config.vocab_size for place in range(40)]
        model.prefill(prompt, 0, [3, 1], cache)
        tables, positions = [[3, 1], [5], [0]], [40, 0, 0]
        found.append(model.decode([9, 8, 7, 0], [*positions, 0], tables, cache)[:3].float())
        assert model.step_kernels == ("triton" if storage.paged else "torch")
    close = CLOSE if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.05}
    torch.testing.assert_close(found[1], found[0], **close)


COMPILE = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from zerolayer_worker.models import paged_attention as module

SHAPE = {"HEADS": 8, "PAGE": 32, "DIM": 128, "WIDTH": 128}
KERNELS = {
    module._store_kernel: ({}, 4),
    module._attend_kernel: ({"GROUPS": 4, "HEIGHT": 16, "BLOCK": module._BLOCK}, module._WARPS),
}
POINTERS = {"q": "*fp32", "out": "*fp32", "step": "*i32"}
for kernel, (constants, warps) in KERNELS.items():
    constants |= SHAPE
    types = {
        name: "constexpr" if name in constants
        else "i32" if name in ("rows", "k_stride", "v_stride") else POINTERS.get(name, "*bf16")
        for name in kernel.arg_names
    }
    source = ASTSource(kernel, types, constexprs=constants)
    made = compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    assert made.asm["cubin"]
"""


def test_the_kernels_compile_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    """What the interpreter takes, the compiler may not: both kernels, down to machine code of an H100."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_DEFAULT_FP_FUSION": "1"}
    environment.pop("TRITON_INTERPRET", None)
    ran = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
