"""The log-sum-exp of all scores, gathered tile by tile."""

import torch
from torch import Tensor
from torch.nn.functional import pad

BLOCK = 256


class LogSumExp:
    """Sums fixed blocks of tokens first, so that the tile size can't change a bit of the result.

    That holds for tiles that start at multiples of `BLOCK`. Memory is rows * vocabulary / `BLOCK`.
    """

    def __init__(self) -> None:
        self._maxima: list[Tensor] = []
        self._sums: list[Tensor] = []

    def add(self, scores: Tensor) -> None:
        """Takes the next tile's fp32 scores, `[rows, width]`."""
        missing = -scores.shape[1] % BLOCK
        if missing:
            scores = pad(scores, (0, missing), value=float("-inf"))
        blocks = scores.view(scores.shape[0], -1, BLOCK)
        maxima = blocks.amax(dim=-1)
        self._sums.append((blocks - maxima[..., None]).exp_().sum(dim=-1))
        self._maxima.append(maxima)

    def result(self) -> Tensor:
        """fp64 `[rows]`."""
        maxima, sums = torch.cat(self._maxima, dim=1).double(), torch.cat(self._sums, dim=1).double()
        return torch.logsumexp(maxima + sums.log(), dim=1)
