"""The log-sum-exp of all scores, gathered tile by tile."""

import torch
from torch import Tensor

GROUP = 8192


class LogSumExp:
    """Sums fixed groups of tokens and folds them in their order: the tile size can't change a bit.

    Memory is rows * `GROUP` at most, whatever the vocabulary.

    Args:
        temperature: what the scores are divided by, fp32 `[rows, 1]`; None for 1.
    """

    def __init__(self, temperature: Tensor | None = None) -> None:
        self._temperature = temperature
        self._pending: Tensor | None = None
        self._best: Tensor | None = None
        self._sum: Tensor | None = None

    def add(self, scores: Tensor) -> None:
        """Takes the next tile's fp32 scores, `[rows, width]`."""
        if self._pending is not None:
            scores = torch.cat((self._pending, scores), dim=1)
            self._pending = None
        whole = scores.shape[1] // GROUP * GROUP
        for start in range(0, whole, GROUP):
            self._fold(scores[:, start : start + GROUP])
        if whole < scores.shape[1]:
            self._pending = scores[:, whole:]

    def result(self) -> Tensor:
        """fp64 `[rows]`; at least one tile was added, none comes after."""
        if self._pending is not None:
            self._fold(self._pending)
            self._pending = None
        assert self._best is not None  # noqa: S101 - see above
        assert self._sum is not None  # noqa: S101
        return (self._best + self._sum.log())[:, 0]

    def _fold(self, group: Tensor) -> None:
        best = group.amax(dim=1, keepdim=True)
        shifted = group - best
        if self._temperature is not None:
            shifted.div_(self._temperature)
            best = best.double() / self._temperature
        total = shifted.exp_().sum(dim=1, keepdim=True).double()
        best = best.double()
        if self._best is None or self._sum is None:
            self._best, self._sum = best, total
            return
        higher = torch.maximum(self._best, best)
        self._sum = self._sum * (self._best - higher).exp() + total * (best - higher).exp()
        self._best = higher
