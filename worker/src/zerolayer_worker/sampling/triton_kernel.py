"""The head's product, the noise and each tile's best tokens in one Triton kernel.

A program takes one tile of the vocabulary and a block of rows, multiplies, and keeps what the rows need of
the tile; the scores never leave the chip. Blocks have a fixed size, so that a row's bits depend neither on
the number of rows nor on their order. Prior art: FlashSampling (arXiv 2603.15854), Cut Cross-Entropy
(arXiv 2411.09009).

`TRITON_INTERPRET=1`, set before this module is imported, runs the kernels on a CPU.
"""

# Kernels are Python that Triton compiles: its types are not those of Python's checkers.
# pyright: basic, reportArgumentType=false, reportOperatorIssue=false, reportCallIssue=false
# ruff: noqa: N803, PLR0124, PLR0917

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 128
LISTED = 16
_ROWS = 16
_DEPTH = 64

# SplitMix64's constants, as signed numbers; see `noise`.
_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15 - (1 << 64))
_FIRST = tl.constexpr(0xBF58476D1CE4E5B9 - (1 << 64))
_SECOND = tl.constexpr(0x94D049BB133111EB - (1 << 64))
# Below every score's key.
_NOTHING = tl.constexpr(1 - (1 << 63))


@triton.jit
def _shifted(bits, by: tl.constexpr):
    """A logical shift to the right."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


@triton.jit
def _gumbel(keys, token_ids):
    """`noise.gumbel`, up to the last bits of the logarithms."""
    bits = keys[:, None] + (token_ids[None, :].to(tl.int64) + 1) * _GOLDEN
    bits = (bits ^ _shifted(bits, 30)) * _FIRST
    bits = (bits ^ _shifted(bits, 27)) * _SECOND
    bits = bits ^ _shifted(bits, 31)
    uniform = (_shifted(bits, 24) + 1).to(tl.float32) * 9.094947017729282e-13  # 2 ** -40
    uniform = tl.minimum(uniform, 0.99999994)  # 1 - 2 ** -24
    # log1p(-uniform) by logarithms of numbers that fp32 holds exactly (Goldberg, ACM Computing Surveys 1991).
    rest = 1.0 - uniform
    taken = 1.0 - rest
    log = tl.where(taken == 0, -uniform, tl.log(rest) * (uniform / tl.where(taken == 0, 1.0, taken)))
    return -tl.log(-log)


@triton.jit
def _scores(hidden, weight, row, column, rows, vocab, width, DEPTH: tl.constexpr):
    """The scores of a block, fp32; minus infinity beyond the vocabulary."""
    total = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    inside = column < vocab
    places = column.to(tl.int64) * width
    for start in range(0, width, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        within = depth < width
        left = tl.load(
            hidden + row[:, None] * width + depth[None, :],
            mask=(row < rows)[:, None] & within[None, :],
            other=0.0,
        )
        right = tl.load(
            weight + places[None, :] + depth[:, None], mask=inside[None, :] & within[:, None], other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    return tl.where(inside[None, :], total, float("-inf"))


@triton.jit
def _best_kernel(
    hidden, weight, keys, temperature, values, tokens, scores_out, rows, vocab, width,
    NOISY: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Per row and tile: the best value, its token and its score, each `[rows, tiles]`."""
    tile, tiles = tl.program_id(0), tl.num_programs(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    column = tile * WIDTH + tl.arange(0, WIDTH)
    scores = _scores(hidden, weight, row, column, rows, vocab, width, DEPTH)
    value = scores
    if NOISY:
        warmth = tl.load(temperature + row, mask=row < rows, other=0.0)
        noise = _gumbel(tl.load(keys + row, mask=row < rows, other=0), column)
        drawn = scores / tl.where(warmth > 0, warmth, 1.0)[:, None] + noise
        value = tl.where((warmth > 0)[:, None], drawn, scores)
    broken = tl.max((scores != scores).to(tl.int32), axis=1)
    best = tl.max(value, axis=1)
    # Of equal values the lowest token id.
    winner = tl.min(tl.where(value == best[:, None], column[None, :], vocab), axis=1)
    score = tl.sum(tl.where(column[None, :] == winner[:, None], scores, 0.0), axis=1)
    place = row * tiles + tile
    tl.store(values + place, tl.where(broken > 0, float("nan"), best), mask=row < rows)
    tl.store(tokens + place, winner, mask=row < rows)
    tl.store(scores_out + place, score, mask=row < rows)


@triton.jit
def _list_kernel(
    hidden, weight, temperature, keys_out, maxima, sums, rows, vocab, width,
    KEPT: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Per row and tile: the best tokens' `order.rank_keys`, best score, and sum of exponentials below it."""
    tile, tiles = tl.program_id(0), tl.num_programs(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    column = tile * WIDTH + tl.arange(0, WIDTH)
    scores = _scores(hidden, weight, row, column, rows, vocab, width, DEPTH)
    warmth = tl.load(temperature + row, mask=row < rows, other=1.0)
    broken = tl.max((scores != scores).to(tl.int32), axis=1)
    best = tl.max(scores, axis=1)
    mass = tl.sum(tl.exp((scores - best[:, None]) / warmth[:, None]), axis=1)
    bits = (scores + 0.0).to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    ranked = (bits.to(tl.int64) << 32) - column[None, :]
    place = row * tiles + tile
    for index in range(KEPT):
        top = tl.max(ranked, axis=1)
        tl.store(keys_out + place.to(tl.int64) * KEPT + index, top, mask=row < rows)
        ranked = tl.where(ranked == top[:, None], _NOTHING, ranked)
    tl.store(maxima + place, tl.where(broken > 0, float("nan"), best), mask=row < rows)
    tl.store(sums + place, mass, mask=row < rows)


@dataclass(frozen=True, slots=True)
class Lists:
    """What `lists` finds, per row and tile of `TILE` tokens.

    Attributes:
        keys: int64 `[rows, tiles, LISTED]`, each tile's best tokens as `order.rank_keys`, best first.
        maxima: fp32 `[rows, tiles]`, the best score; not a number where any score is none.
        sums: fp32 `[rows, tiles]`, the sum of the exponentials of (score - best) / temperature.
    """

    keys: Tensor
    maxima: Tensor
    sums: Tensor


def best(
    hidden: Tensor, weight: Tensor, keys: Tensor, temperature: Tensor, *, noisy: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Each row's best token, greedy or by the Gumbel-max trick.

    Args:
        hidden: `[rows, width]`, contiguous, of the weight's type.
        weight: the head, `[vocab, width]`, contiguous.
        keys: noise streams, int64 `[rows]`; see `noise.stream_key`.
        temperature: fp32 `[rows]`; 0 for greedy rows.
        noisy: False where all rows are greedy, which saves the noise; the host does not look.

    Returns:
        Token ids int64, their scores fp32, and their values fp32, all `[rows]`; the value is not a number
        where any score of the row is none.
    """
    rows, vocab, width = hidden.shape[0], weight.shape[0], weight.shape[1]
    tiles = triton.cdiv(vocab, TILE)
    values = torch.empty(rows, tiles, device=hidden.device)
    scores = torch.empty_like(values)
    tokens = torch.empty(rows, tiles, dtype=torch.int32, device=hidden.device)
    _best_kernel[(tiles, triton.cdiv(rows, _ROWS))](
        hidden, weight, keys, temperature, values, tokens, scores, rows, vocab, width,
        NOISY=noisy, ROWS=_ROWS, WIDTH=TILE, DEPTH=_DEPTH,
    )  # fmt: skip
    highest = values.amax(dim=1, keepdim=True)
    # Of equal values the first tile's.
    place = (values == highest).int().argmax(dim=1, keepdim=True)
    return tokens.gather(1, place)[:, 0].long(), scores.gather(1, place)[:, 0], highest[:, 0]


def lists(hidden: Tensor, weight: Tensor, temperature: Tensor) -> Lists:
    """Each tile's best tokens and mass; arguments as for `best`, with temperatures above 0."""
    rows, vocab, width = hidden.shape[0], weight.shape[0], weight.shape[1]
    tiles = triton.cdiv(vocab, TILE)
    keys = torch.empty(rows, tiles, LISTED, dtype=torch.int64, device=hidden.device)
    maxima = torch.empty(rows, tiles, device=hidden.device)
    sums = torch.empty_like(maxima)
    _list_kernel[(tiles, triton.cdiv(rows, _ROWS))](
        hidden, weight, temperature, keys, maxima, sums, rows, vocab, width,
        KEPT=LISTED, ROWS=_ROWS, WIDTH=TILE, DEPTH=_DEPTH,
    )  # fmt: skip
    return Lists(keys, maxima, sums)
