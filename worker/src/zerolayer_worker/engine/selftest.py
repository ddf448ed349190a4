"""Checks at start-up what the deterministic intent rests on, on the very weights and hardware at hand.

The forward pass treats sequences apart, but whether a row of a matrix product has the same bits whatever
rows are beside it is the library's choice of kernel. So it is tried: the same sequences, of mixed lengths,
alone and in batches of every size, in pages that lie in another order each time; prompts of one chunk or two.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.models.kv_cache import pages_for

_LENGTHS = (3, 70, 17, 64, 33, 100, 65, 8)
_CHUNK = 64
_ALL_SIZES_UP_TO = 9


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """`row_multiple` is the smallest that passed; `reason` says why none did."""

    row_multiple: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Sequences:
    """What is decoded: each sequence's length without the new token, and its pages."""

    lengths: list[int]
    tables: list[list[int]]


def choose_row_multiple(runner: Runner, rows: int) -> SelfTestResult:
    """Tries row multiples from cheap to safe, for steps of up to `rows`, and leaves the runner set so."""
    for multiple in sorted({1, 4, 8, rows}):
        runner.row_multiple = multiple
        if rows_are_independent(runner, rows):
            return SelfTestResult(multiple)
    return SelfTestResult(rows, "self-test: a sequence's scores depend on the batch it runs in")


@torch.inference_mode()
def rows_are_independent(runner: Runner, rows: int) -> bool:
    """Whether prompts and decoding give the same bits in any order of pages, alone and in batches."""
    straight, shuffled = _layout(runner, rows, None), _layout(runner, rows, random.Random(0))  # noqa: S311 - no secret
    prompts = _prefill(runner, straight)
    alone = [_scores(runner, [row], straight)[0] for row in range(rows)]
    for sequences in (straight, shuffled):
        if not torch.equal(_prefill(runner, sequences), prompts):
            return False
        for batch in _batches(rows):
            found = _scores(runner, batch, sequences)
            if not all(torch.equal(each, alone[row]) for row, each in zip(batch, found, strict=True)):
                return False
    return True


def _layout(runner: Runner, rows: int, order: random.Random | None) -> _Sequences:
    """As many sequences as there are rows, or as the cache has pages for; further rows take them in turn."""
    cache = runner.cache
    count = min(rows, cache.pages)
    room = min(runner.model.length, cache.pages // count * cache.page)
    lengths = [min(_LENGTHS[index % len(_LENGTHS)], room - 1) for index in range(count)]
    pages = list(range(cache.pages))
    if order is not None:
        order.shuffle(pages)
    tables = [[pages.pop() for _ in range(pages_for(length + 1, cache.page))] for length in lengths]
    return _Sequences(
        [lengths[row % count] for row in range(rows)], [tables[row % count] for row in range(rows)]
    )


def _batches(rows: int) -> Iterator[list[int]]:
    sizes = {size for size in range(1, rows + 1) if size <= _ALL_SIZES_UP_TO or size % 8 in {0, 1, 7}}
    for size in sorted(sizes | {rows}):
        first = list(range(size))
        yield first
        yield [rows - 1 - row for row in first]


def _prefill(runner: Runner, sequences: _Sequences) -> Tensor:
    """The final states after the prompts, `[sequences, hidden_size]`."""
    states: list[Tensor] = []
    for index, (length, table) in enumerate(zip(sequences.lengths, sequences.tables, strict=True)):
        if length and table not in sequences.tables[:index]:
            tokens = _tokens(runner, index, length)
            chunks = [
                runner.model.prefill(tokens[start : start + _CHUNK], start, table, runner.cache)
                for start in range(0, length, _CHUNK)
            ]
            states.append(chunks[-1])
    return torch.cat(states) if states else torch.empty(0)


def _tokens(runner: Runner, index: int, length: int) -> list[int]:
    """Anything but regular: neighbouring ids would have similar embeddings."""
    vocabulary = runner.model.config.vocab_size
    return [(7919 * (index + 1) * (position + 1)) % vocabulary for position in range(length)]


def _scores(runner: Runner, rows: Sequence[int], sequences: _Sequences) -> Tensor:
    """Hidden states and the first tile's scores of each row's next token, `[rows, …]`."""
    tables = [sequences.tables[row] for row in rows]
    seeds = [sequences.tables.index(table) for table in tables]
    tokens = [(31 * seed + 5) % runner.model.config.vocab_size for seed in seeds]
    states = runner.states(tokens, [sequences.lengths[row] for row in rows], tables)
    tiles = runner.model.head.tiles
    parts = [states.float(), tiles[0].scores(states), tiles[-1].scores(states)]
    return torch.cat(parts, dim=1)[: len(rows)]
