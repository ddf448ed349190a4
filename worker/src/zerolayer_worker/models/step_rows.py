"""A decode step's rows as one table of numbers, which reaches a GPU in one piece.

A column is a row of the step: its token, its sequence's length up to it, then its sequence's pages in the
order of their tokens, filled up with 0. A length of 0 marks a row that only fills the step up: it reads and
writes no keys and values.
"""

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Final

import torch
from torch import Tensor

from zerolayer_worker.common.transfer import on_device
from zerolayer_worker.models.kv_cache import pages_for

TOKENS: Final = 0
LENGTHS: Final = 1
TABLES: Final = 2


def step_rows(
    token_ids: Sequence[int],
    positions: Sequence[int],
    tables: Sequence[Sequence[int]],
    *,
    page: int,
    device: torch.device,
) -> Tensor:
    """int32 `[2 + pages, rows]`.

    Args:
        token_ids: one per row; rows beyond `len(tables)` only fill up.
        positions: each token's position in its sequence.
        tables: the pages of the first rows' sequences, up to the position or further.
        page: tokens of a page.
        device: where the table is wanted.
    """
    lengths = [position + 1 for position, _ in zip(positions, tables, strict=False)]
    needed = [table[: pages_for(length, page)] for table, length in zip(tables, lengths, strict=True)]
    padding = len(token_ids) - len(tables)
    columns = zip_longest(*needed, *[()] * padding, fillvalue=0)
    numbers = list(chain(token_ids, lengths, [0] * padding, *columns))
    return on_device(numbers, torch.int32, device).view(-1, len(token_ids))
