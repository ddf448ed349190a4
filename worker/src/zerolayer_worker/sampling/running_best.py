"""Each row's best token so far."""

import math

import torch
from torch import Tensor

_BLOCK = 128


class RunningBest:
    """The highest value of each row; of equal ones that of the lowest token id.

    Attributes:
        value: fp32 `[rows]`; not a number as soon as any value was none.
        token: int64 `[rows]`.
        score: fp32 `[rows]`, the token's score, which may differ from its value.
    """

    def __init__(self, rows: int, device: torch.device) -> None:
        self.value = torch.full((rows,), -math.inf, device=device)
        self.token = torch.zeros(rows, dtype=torch.int64, device=device)
        self.score = torch.zeros(rows, device=device)

    def add(self, values: Tensor, scores: Tensor, start: int) -> None:
        """Takes the next tile's values and scores, both fp32 `[rows, width]`; `start` is its first token."""
        blocks, whole = _blocks(values)
        value, block = blocks.max(dim=1, keepdim=True)
        value = value[:, 0]
        # Tiles come in the order of ids: an equal value later is not better. NaN is.
        better = ~(value <= self.value)
        if not bool(better.any()):
            return
        place = _within(values, block, whole)
        self.value = torch.maximum(self.value, value)  # which keeps what is no number
        self.token = torch.where(better, place[:, 0] + start, self.token)
        self.score = torch.where(better, scores.gather(1, place)[:, 0], self.score)


def _blocks(values: Tensor) -> tuple[Tensor, bool]:
    """The best value of each block of tokens, and whether blocks are of more than one token.

    `max` with its index is slow and `amax` is not, so that the index is sought in the best block alone.
    """
    if values.shape[1] % _BLOCK:
        return values, False
    return values.view(values.shape[0], -1, _BLOCK).amax(dim=2), True


def _within(values: Tensor, block: Tensor, whole: bool) -> Tensor:
    """The place of the best value in its row, `[rows, 1]`; `max` reports the first of equal ones."""
    if not whole:
        return block
    blocks = values.view(values.shape[0], -1, _BLOCK)
    inside = blocks.gather(1, block[..., None].expand(-1, -1, _BLOCK))
    return block * _BLOCK + inside[:, 0].max(dim=1, keepdim=True).indices
