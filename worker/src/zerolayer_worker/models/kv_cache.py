"""Keys and values of every running sequence, in pages that any of them may hold."""

import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig

PAGE_TOKENS: Final = 32
"""Tokens of a page, unless the prefill chunk is no multiple of it."""


def page_tokens(chunk: int) -> int:
    """The page size that goes with a prefill chunk: the largest part of both, so that chunks fill pages."""
    return math.gcd(PAGE_TOKENS, chunk)


def pages_for(tokens: int, page: int) -> int:
    """How many pages of `page` tokens hold `tokens`."""
    return -(-tokens // page)


def filled_tables(tables: Sequence[Sequence[int]], lengths: Sequence[int], page: int) -> list[list[int]]:
    """Each table's pages for so many tokens, filled up with 0 to the longest one's."""
    counts = [pages_for(length, page) for length in lengths]
    return [
        [*table[:count], *[0] * (max(counts) - count)] for table, count in zip(tables, counts, strict=True)
    ]


class KvCache:
    """Tensors of shape `[layers, pages, kv_heads, page, head_dim]`.

    The memory is reserved but not touched, so that a CPU worker grows only as far as pages are used.
    Nothing beyond a sequence's own length is ever read, hence what a page held before can't matter.
    """

    def __init__(
        self,
        config: ModelConfig,
        pages: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        page: int = PAGE_TOKENS,
    ) -> None:
        """Reserves `pages` pages of `page` tokens each."""
        shape = (config.layers, pages, config.kv_heads, page, config.head_dim)
        self.keys: Tensor = torch.empty(shape, dtype=dtype, device=device)
        self.values: Tensor = torch.empty(shape, dtype=dtype, device=device)

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return self.keys.shape[1]

    @property
    def page(self) -> int:
        """Tokens of a page."""
        return self.keys.shape[3]


def fixed_tables(sequences: int, length: int, page: int = PAGE_TOKENS) -> tuple[Sequence[int], ...]:
    """Block tables for sequences that keep their pages, each with room for `length` tokens."""
    each = pages_for(length, page)
    return tuple(range(index * each, (index + 1) * each) for index in range(sequences))
