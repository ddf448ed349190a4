"""Lays sequences that begin alike out as one row of tokens: what they share is computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Pack:
    """Sequences behind the beginning that they have in common.

    Attributes:
        ids: int64 `[tokens]`: the common beginning, then each sequence's own rest.
        positions: int64 `[tokens]`: each token's position in its sequence.
        grid: int64 `[sequences, longest]`: the row of `ids` that holds each sequence's token; rows beyond
            a sequence's end are 0 and mean nothing.
        places: int64 `[tokens]`: where each row of `ids` lies in the flattened grid.
        lengths: each sequence's.
    """

    ids: Tensor
    positions: Tensor
    grid: Tensor
    places: Tensor
    lengths: tuple[int, ...]

    def rows(self, sequence: int, start: int, end: int) -> Tensor:
        """The rows of a sequence's tokens `start … end - 1`."""
        return self.grid[sequence, start : min(end, self.lengths[sequence])]


def pack(sequences: Sequence[Sequence[int]]) -> Pack:
    """Packs sequences of at least one token each."""
    shared = shared_length(sequences)
    ids, positions = list(sequences[0][:shared]), list(range(shared))
    longest = max(map(len, sequences))
    places = list(positions)
    grid = torch.zeros((len(sequences), longest), dtype=torch.int64)
    for index, sequence in enumerate(sequences):
        own = range(shared, len(sequence))
        grid[index, :shared] = torch.arange(shared)
        grid[index, shared : len(sequence)] = torch.arange(len(ids), len(ids) + len(own))
        ids += sequence[shared:]
        positions += own
        places += [index * longest + position for position in own]
    return Pack(
        torch.tensor(ids), torch.tensor(positions), grid, torch.tensor(places), tuple(map(len, sequences))
    )


def shared_length(sequences: Sequence[Sequence[int]]) -> int:
    """How many tokens all sequences begin with alike; the least and the greatest differ first."""
    least, greatest = min(map(tuple, sequences)), max(map(tuple, sequences))
    pairs = enumerate(zip(least, greatest, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(least), len(greatest)))
