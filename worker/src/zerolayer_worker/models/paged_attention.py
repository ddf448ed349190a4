"""Attention of decode steps over pages, as Triton kernels; `attention.attend_rows` is their oracle.

One program attends for one row and one head of keys and values, from the sequence's first token to its last,
in blocks of a fixed size. What a row computes depends on its own sequence alone: not on its neighbours, nor
on their number, nor on which pages hold what.

`TRITON_INTERPRET=1`, set before this module is imported, runs the kernels on a CPU.
"""

# Kernels are Python that Triton compiles: its types are not those of Python's checkers.
# pyright: basic, reportArgumentType=false, reportOperatorIssue=false, reportCallIssue=false
# ruff: noqa: N803, PLR0917

import triton
import triton.language as tl
from torch import Tensor

from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.step_rows import LENGTHS, TABLES

# Tokens, and the warps that hold them without spilling registers up to heads of 128 numbers.
_BLOCK, _WARPS = 64, 8
# What a product on the chip takes at least, in each direction.
_LEAST = 16
_LENGTHS, _TABLES = tl.constexpr(LENGTHS), tl.constexpr(TABLES)


# Not made anew for single numbers of rows, so that all batches run the same code.
@triton.jit(do_not_specialize=["rows"])
def _store_kernel(
    k, v, keys, values, step, rows, k_stride, v_stride,
    HEADS: tl.constexpr, PAGE: tl.constexpr, DIM: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Puts one row's key and value of one head where they belong; nothing in rows that fill up."""
    row, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(step + _LENGTHS * rows + row)
    if length > 0:
        place = length - 1
        column = tl.arange(0, WIDTH)
        inside, source = column < DIM, head * DIM + column
        page = tl.load(step + (_TABLES + place // PAGE) * rows + row).to(tl.int64)
        target = ((page * HEADS + head) * PAGE + place % PAGE) * DIM + column
        tl.store(keys + target, tl.load(k + row * k_stride + source, mask=inside), mask=inside)
        tl.store(values + target, tl.load(v + row * v_stride + source, mask=inside), mask=inside)


# Not made anew for single numbers of rows, so that all batches run the same code.
@triton.jit(do_not_specialize=["rows"])
def _attend_kernel(
    q, keys, values, step, out, rows,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, PAGE: tl.constexpr, DIM: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The queries of one row that share a head of keys and values; softmax as the blocks come."""
    row, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(step + _LENGTHS * rows + row)
    group, column = tl.arange(0, HEIGHT), tl.arange(0, WIDTH)
    inside = (column < DIM)[None, :]
    asked = (group < GROUPS)[:, None] & inside
    place = ((row * HEADS + head) * GROUPS + group)[:, None] * DIM + column[None, :]
    query = tl.load(q + place, mask=asked, other=0.0)
    highest = tl.full((HEIGHT,), float("-inf"), tl.float32)
    total = tl.zeros((HEIGHT,), tl.float32)
    mixed = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for start in range(0, length, BLOCK):
        token = start + tl.arange(0, BLOCK)
        there = token < length
        page = tl.load(step + (_TABLES + token // PAGE) * rows + row, mask=there, other=0).to(tl.int64)
        source = (((page * HEADS + head) * PAGE + token % PAGE) * DIM)[:, None] + column[None, :]
        read = there[:, None] & inside
        key = tl.load(keys + source, mask=read, other=0.0).to(tl.float32)
        value = tl.load(values + source, mask=read, other=0.0).to(tl.float32)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee")
        scores = tl.where(there[None, :], scores, float("-inf"))
        peak = tl.maximum(highest, tl.max(scores, axis=1))
        kept, weights = tl.exp(highest - peak), tl.exp(scores - peak[:, None])
        total = total * kept + tl.sum(weights, axis=1)
        mixed = tl.dot(weights, value, mixed * kept[:, None], input_precision="ieee")
        highest = peak
    tl.store(out + place, mixed / tl.where(total > 0, total, 1.0)[:, None], mask=asked)


def attend_paged(q: Tensor, k: Tensor, v: Tensor, *, cache: KvCache, layer: int, step: Tensor) -> Tensor:
    """`attention.attend_rows` without a look at any number from the host.

    Args:
        q: fp32 `[rows, heads, head_dim]`, contiguous, rotated and scaled.
        k: `[rows, kv_heads, head_dim]`, rotated; each row contiguous.
        v: `[rows, kv_heads, head_dim]`; each row contiguous.
        cache: where keys and values are.
        layer: index of the layer.
        step: int32 `[2 + pages, rows]`, contiguous; see `step_rows`.

    Returns:
        fp32 `[rows, heads * head_dim]`, zero in rows that fill up.
    """
    rows, heads, dim = q.shape
    kv_heads, width = k.shape[1], max(_LEAST, triton.next_power_of_2(dim))
    keys, values, grid = cache.keys[layer], cache.values[layer], (rows, kv_heads)
    shape = {"HEADS": kv_heads, "PAGE": cache.page, "DIM": dim, "WIDTH": width}
    out = q.new_empty(rows, heads * dim)
    _store_kernel[grid](k, v, keys, values, step, rows, k.stride(0), v.stride(0), **shape)
    groups = heads // kv_heads
    height = max(_LEAST, triton.next_power_of_2(groups))
    _attend_kernel[grid](
        q,
        keys,
        values,
        step,
        out,
        rows,
        GROUPS=groups,
        HEIGHT=height,
        BLOCK=_BLOCK,
        num_warps=_WARPS,
        **shape,
    )
    return out
