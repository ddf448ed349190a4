"""Attention over paged keys and values.

It is explicit (product, softmax, product) in fp32 and one sequence at a time over exactly its own keys and
values: nothing a neighbour does, nor how long it is, nor which pages hold what, can change a bit of a
sequence's result.

A block table lists a sequence's pages in the order of its tokens. `attend_rows` is the oracle of every faster
kernel for decoding, and defines what such a kernel takes and gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.common.transfer import on_device
from zerolayer_worker.models.kv_cache import KvCache, filled_tables, pages_for


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """Where one prefill chunk's keys and values are; made once, used by every layer.

    Attributes:
        start: the chunk's first position.
        end: the position after its last.
        writes: int64 `[tokens * kv_heads]`, see `_write`.
        reads: int64 `[kv_heads * pages]`, see `_gather`.
        mask: fp32 `[tokens, tokens]`, minus infinity where a token may not look.
    """

    start: int
    end: int
    writes: Tensor
    reads: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class RowPages:
    """Where the keys and values of a decode step's rows are; made once per step, used by every layer.

    Attributes:
        tables: int32 `[rows, max_pages]`, each row's pages in the order of its tokens, filled up with 0.
        lengths: int32 `[rows]`, tokens of each row's sequence up to the new one, which counts.
        writes: int64 `[rows * kv_heads]`, see `_write`.
        reads: for each row int64 `[kv_heads * pages]`, see `_gather`, and its length once more.
    """

    tables: Tensor
    lengths: Tensor
    writes: Tensor
    reads: tuple[tuple[Tensor, int], ...]


def chunk_pages(start: int, count: int, table: Sequence[int], cache: KvCache) -> ChunkPages:
    """Prepares a chunk of `count` tokens at position `start` of the sequence with this block table."""
    device, end = cache.keys.device, start + count
    pages = on_device(table[: pages_for(end, cache.page)], torch.int64, device)
    positions = torch.arange(start, end, device=device)
    return ChunkPages(
        start=start,
        end=end,
        writes=_writes(pages[positions // cache.page], positions, cache),
        reads=_reads(pages, cache),
        mask=torch.full((count, count), float("-inf"), device=device).triu_(1),
    )


def row_pages(positions: Sequence[int], tables: Sequence[Sequence[int]], cache: KvCache) -> RowPages:
    """Prepares a step of one token per row, at these positions of sequences with these block tables."""
    device = cache.keys.device
    lengths = [position + 1 for position in positions]
    filled = torch.tensor(filled_tables(tables, lengths, cache.page), device=device)
    counts = [pages_for(length, cache.page) for length in lengths]
    last = torch.tensor(
        [table[count - 1] for table, count in zip(tables, counts, strict=True)], device=device
    )
    return RowPages(
        tables=filled.int(),
        lengths=torch.tensor(lengths, dtype=torch.int32, device=device),
        writes=_writes(last, torch.tensor(positions, device=device), cache),
        reads=tuple(
            (_reads(filled[row, :count], cache), length)
            for row, (count, length) in enumerate(zip(counts, lengths, strict=True))
        ),
    )


def attend_chunk(q: Tensor, k: Tensor, v: Tensor, *, cache: KvCache, layer: int, where: ChunkPages) -> Tensor:
    """Stores a chunk's keys and values and attends causally to all up to its own.

    Args:
        q: fp32 `[tokens, heads, head_dim]`, rotated and scaled.
        k: `[tokens, kv_heads, head_dim]`, rotated.
        v: `[tokens, kv_heads, head_dim]`.
        cache: where keys and values are.
        layer: index of the layer.
        where: the chunk's places.

    Returns:
        fp32 `[tokens, heads * head_dim]`.
    """
    count, heads, dim = q.shape
    kv_heads = k.shape[1]
    groups = heads // kv_heads
    _write(cache, layer, where.writes, k, v)
    keys = _gather(cache.keys[layer], where.reads)[:, : where.end]
    values = _gather(cache.values[layer], where.reads)[:, : where.end]
    grouped = q.view(count, kv_heads, groups, dim).permute(1, 2, 0, 3)
    scores = torch.bmm(grouped.reshape(kv_heads, groups * count, dim), keys.float().transpose(1, 2))
    scores.view(kv_heads, groups, count, -1)[..., -count:] += where.mask
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values.float())
    return mixed.view(kv_heads, groups, count, dim).permute(2, 0, 1, 3).reshape(count, heads * dim)


def attend_rows(q: Tensor, k: Tensor, v: Tensor, *, cache: KvCache, layer: int, where: RowPages) -> Tensor:
    """Stores one new key and value per row and attends to all of the row's sequence up to it.

    Rows may be of one sequence, at different positions: all are stored before any is read.

    Args:
        q: fp32 `[rows or more, heads, head_dim]`, rotated and scaled; what follows the rows fills up.
        k: `[rows, kv_heads, head_dim]`, rotated.
        v: `[rows, kv_heads, head_dim]`.
        cache: where keys and values are.
        layer: index of the layer.
        where: the rows' places.

    Returns:
        fp32 `[rows or more, heads * head_dim]`, zero in rows that fill up.
    """
    _, heads, dim = q.shape
    kv_heads = k.shape[1]
    _write(cache, layer, where.writes, k, v)
    out = q.new_zeros(q.shape[0], kv_heads, heads // kv_heads, dim)
    grouped = q.view(out.shape)
    for row, (reads, length) in enumerate(where.reads):
        keys = _gather(cache.keys[layer], reads)[:, :length]
        values = _gather(cache.values[layer], reads)[:, :length]
        scores = torch.bmm(grouped[row], keys.float().transpose(1, 2))
        torch.bmm(torch.softmax(scores, dim=-1), values.float(), out=out[row])
    return out.view(q.shape[0], heads * dim)


def _writes(pages: Tensor, positions: Tensor, cache: KvCache) -> Tensor:
    """For each token and KV head its place in a layer seen as `[pages * kv_heads * page, head_dim]`."""
    heads = torch.arange(cache.keys.shape[2], device=pages.device)
    blocks = pages[:, None] * cache.keys.shape[2] + heads
    return (blocks * cache.page + (positions % cache.page)[:, None]).flatten()


def _reads(pages: Tensor, cache: KvCache) -> Tensor:
    """For each KV head and page its place in a layer seen as `[pages * kv_heads, page * head_dim]`."""
    heads = torch.arange(cache.keys.shape[2], device=pages.device)
    return (pages * cache.keys.shape[2] + heads[:, None]).flatten()


def _write(cache: KvCache, layer: int, writes: Tensor, k: Tensor, v: Tensor) -> None:
    dim = k.shape[2]
    cache.keys[layer].view(-1, dim).index_copy_(0, writes, k.reshape(-1, dim))
    cache.values[layer].view(-1, dim).index_copy_(0, writes, v.reshape(-1, dim))


def _gather(stored: Tensor, reads: Tensor) -> Tensor:
    """A sequence's keys or values in one piece, `[kv_heads, tokens of its pages, head_dim]`."""
    kv_heads, dim = stored.shape[1], stored.shape[3]
    return stored.view(-1, stored.shape[2] * dim).index_select(0, reads).view(kv_heads, -1, dim)
