"""Checks at start-up what the deterministic intent rests on, on the very weights and hardware at hand.

The forward pass treats sequences apart, but whether a row of a matrix product has the same bits whatever
rows are beside it is the library's choice of kernel. So it is tried: the same sequences, of mixed lengths,
alone and in batches of every size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.engine.runner import Runner

_LENGTHS = (3, 70, 17, 64, 33, 100, 65, 8)
_ALL_SIZES_UP_TO = 9


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """`row_multiple` is the smallest that passed; `reason` says why none did."""

    row_multiple: int
    reason: str | None = None


def choose_row_multiple(runner: Runner) -> SelfTestResult:
    """Tries row multiples from cheap to safe and leaves the runner set to the outcome."""
    slots = runner.cache.slots
    for multiple in sorted({1, 4, 8, slots}):
        runner.row_multiple = multiple
        if rows_are_independent(runner):
            return SelfTestResult(multiple)
    return SelfTestResult(slots, "self-test: a sequence's scores depend on the batch it runs in")


@torch.inference_mode()
def rows_are_independent(runner: Runner) -> bool:
    """Whether decoding gives the same bits alone, in batches of several sizes and in another order."""
    slots = runner.cache.slots
    lengths = [min(_LENGTHS[slot % len(_LENGTHS)], runner.cache.length - 1) for slot in range(slots)]
    for slot, length in enumerate(lengths):
        runner.model.prefill(_tokens(runner, slot, length), slot, 0, runner.cache)
    alone = [_scores(runner, [slot], lengths)[0] for slot in range(slots)]
    return all(
        torch.equal(row, alone[slot])
        for batch in _batches(slots)
        for slot, row in zip(batch, _scores(runner, batch, lengths), strict=True)
    )


def _batches(slots: int) -> Iterator[list[int]]:
    sizes = {size for size in range(1, slots + 1) if size <= _ALL_SIZES_UP_TO or size % 8 in {0, 1, 7}}
    for size in sorted(sizes | {slots}):
        first = list(range(size))
        yield first
        yield [slots - 1 - slot for slot in first]


def _tokens(runner: Runner, slot: int, length: int) -> list[int]:
    """Anything but regular: neighbouring ids would have similar embeddings."""
    vocabulary = runner.model.config.vocab_size
    return [(7919 * (slot + 1) * (position + 1)) % vocabulary for position in range(length)]


def _scores(runner: Runner, slots: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Hidden states and the first tile's scores of each slot's next token, `[rows, …]`."""
    missing = -len(slots) % runner.row_multiple
    tokens = [(31 * slot + 5) % runner.model.config.vocab_size for slot in slots] + [0] * missing
    positions = [lengths[slot] for slot in slots] + [0] * missing
    states = runner.model.decode(tokens, positions, slots, runner.cache)
    tiles = runner.model.head.tiles
    parts = [states.float(), tiles[0].scores(states), tiles[-1].scores(states)]
    return torch.cat(parts, dim=1)[: len(slots)]
