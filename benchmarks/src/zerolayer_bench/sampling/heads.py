"""Heads whose product is known already, so that what is measured is the choice alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.models.head import TILE_ROWS


class StoredHead:
    """The scores are given: for every row the same, or one row each."""

    def __init__(self, scores: Tensor, tile_rows: int = TILE_ROWS) -> None:
        """Takes fp32 `scores` `[1, vocab]`, or `[rows, vocab]` for as many hidden states."""
        self.vocab_size: int = scores.shape[1]
        parts = scores.split(tile_rows, dim=1)
        # A real product writes each tile's scores side by side, not with gaps.
        self.tiles = [
            StoredTile(start, part.contiguous())
            for start, part in zip(range(0, self.vocab_size, tile_rows), parts, strict=True)
        ]


@dataclass(frozen=True)
class StoredTile:
    """Scores of consecutive tokens from `start` on."""

    start: int
    stored: Tensor

    @property
    def width(self) -> int:
        """Number of tokens."""
        return self.stored.shape[1]

    def scores(self, hidden: Tensor) -> Tensor:
        """The stored scores, one row per hidden state."""
        return self.stored.expand(hidden.shape[0], -1)


def language_like(rows: int, vocab: int, seed: int = 0) -> Tensor:
    """Scores `[rows, vocab]` of Zipf's law with exponent 1.1 in a random order of tokens, and some noise."""
    generator = torch.Generator().manual_seed(seed)
    by_rank = -1.1 * torch.arange(1, vocab + 1).float().log()
    shuffled = torch.stack([by_rank[torch.randperm(vocab, generator=generator)] for _ in range(rows)])
    return shuffled + 0.3 * torch.randn(rows, vocab, generator=generator)
