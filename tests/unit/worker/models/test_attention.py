"""Paged attention against a naive one over plain tensors."""

import random
from pathlib import Path

import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.attention import attend_chunk, attend_rows, chunk_pages, row_pages
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.kv_cache import KvCache

CPU = torch.device("cpu")
PAGES, PAGE, LAYER = 24, 8, 1
LENGTHS = (1, 8, 9, 31)


@pytest.fixture
def config(tmp_path: Path) -> ModelConfig:
    return read_config(make_tiny_model(tmp_path))


@pytest.fixture
def cache(config: ModelConfig) -> KvCache:
    """Whatever is read by mistake shows."""
    made = KvCache(config, PAGES, torch.float32, CPU, page=PAGE)
    made.keys.fill_(float("nan"))
    made.values.fill_(float("nan"))
    return made


def drawn(config: ModelConfig, tokens: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    shapes = [(tokens, heads, config.head_dim) for heads in (config.heads, config.kv_heads, config.kv_heads)]
    q, k, v = (torch.randn(shape, generator=source) for shape in shapes)
    return q, k, v


def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention of all tokens in fp64, head by head: `[tokens, heads * head_dim]`."""
    tokens, heads, _ = q.shape
    groups = heads // k.shape[1]
    out = []
    for head in range(heads):
        keys, values = k[:, head // groups].double(), v[:, head // groups].double()
        scores = q[:, head].double() @ keys.T
        scores += torch.full((tokens, tokens), float("-inf")).triu_(1)
        out.append(scores.softmax(dim=-1) @ values)
    return torch.stack(out, dim=1).flatten(1)


def tables(seed: int = 0, spare: int = 0) -> list[list[int]]:
    """Pages in any order, some more than needed."""
    pages = random.Random(seed).sample(range(PAGES), PAGES)
    return [[pages.pop() for _ in range(-(-length // PAGE) + spare)] for length in LENGTHS]


def filled(config: ModelConfig, cache: KvCache, where: list[list[int]]) -> list[torch.Tensor]:
    """Prefills all but each sequence's last token in chunks of 16; returns what all tokens should see."""
    expected = []
    for seed, (length, table) in enumerate(zip(LENGTHS, where, strict=True)):
        q, k, v = drawn(config, length, seed)
        expected.append(naive(q, k, v))
        for start in range(0, length - 1, 16):
            part = slice(start, min(start + 16, length - 1))
            places = chunk_pages(start, part.stop - start, table, cache)
            found = attend_chunk(q[part], k[part], v[part], cache=cache, layer=LAYER, where=places)
            torch.testing.assert_close(found, expected[-1][part].float(), rtol=1e-5, atol=1e-5)
    return expected


def last_tokens(config: ModelConfig, rows: list[int]) -> list[torch.Tensor]:
    whole = [drawn(config, LENGTHS[row], row) for row in rows]
    return [torch.stack([each[part][-1] for each in whole]) for part in range(3)]


@pytest.mark.parametrize("spare", [0, 2])
def test_chunks_and_rows_see_what_a_naive_attention_sees(
    config: ModelConfig, cache: KvCache, spare: int
) -> None:
    where = tables(spare=spare)
    expected = filled(config, cache, where)
    q, k, v = last_tokens(config, [0, 1, 2, 3])
    places = row_pages([length - 1 for length in LENGTHS], where, cache)
    found = attend_rows(q, k, v, cache=cache, layer=LAYER, where=places)
    torch.testing.assert_close(
        found, torch.stack([each[-1] for each in expected]).float(), rtol=1e-5, atol=1e-5
    )
    assert cache.keys[0].isnan().all()


def test_tables_and_lengths_are_what_a_kernel_gets(cache: KvCache) -> None:
    places = row_pages([0, 8, 17], [[5], [3, 9], [1, 0, 2, 7]], cache)
    assert places.tables.tolist() == [[5, 0, 0], [3, 9, 0], [1, 0, 2]]
    assert places.lengths.tolist() == [1, 9, 18]
    assert (places.tables.dtype, places.lengths.dtype) == (torch.int32, torch.int32)


def test_a_row_has_the_same_bits_in_any_pages_and_company(config: ModelConfig, cache: KvCache) -> None:
    alone: list[torch.Tensor] = []
    for seed in range(3):
        where = tables(seed)
        filled(config, cache, where)
        for rows in ([0], [1], [2], [3], [3, 1], [0, 1, 2, 3], [2, 0, 3]):
            q, k, v = last_tokens(config, rows)
            places = row_pages([LENGTHS[row] - 1 for row in rows], [where[row] for row in rows], cache)
            found = attend_rows(q, k, v, cache=cache, layer=LAYER, where=places)
            if len(alone) < len(LENGTHS):
                alone.append(found[0])
            assert all(torch.equal(each, alone[row]) for row, each in zip(rows, found, strict=True))


def test_rows_of_one_sequence_see_each_other(config: ModelConfig, cache: KvCache) -> None:
    """Several known tokens in one step give each the bits it has alone."""
    q, k, v = drawn(config, 12, seed=9)
    table = [4, 2]
    one_by_one = [
        attend_rows(*each, cache=cache, layer=0, where=row_pages([i], [table], cache))[0]
        for i, each in enumerate(zip(q.split(1), k.split(1), v.split(1), strict=True))
    ]
    cache.keys[0].fill_(float("nan"))
    cache.values[0].fill_(float("nan"))
    places = row_pages(range(12), [table] * 12, cache)
    together = attend_rows(q, k, v, cache=cache, layer=0, where=places)
    assert torch.equal(together, torch.stack(one_by_one))


def test_rows_that_fill_up_are_zero(config: ModelConfig, cache: KvCache) -> None:
    q, k, v = drawn(config, 4, seed=1)
    found = attend_rows(q, k[:1], v[:1], cache=cache, layer=0, where=row_pages([0], [[6]], cache))
    assert found[0].any()
    assert not found[1:].any()
