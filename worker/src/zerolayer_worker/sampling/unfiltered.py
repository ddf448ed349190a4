"""The rows that choose among all tokens: greedy ones, and those drawn from the whole distribution."""

import math

import torch
from torch import Tensor

from zerolayer_worker.sampling.exact_cut import Walk
from zerolayer_worker.sampling.noise import gumbel, row_keys
from zerolayer_worker.sampling.rows import Rows, listed
from zerolayer_worker.sampling.running_best import RunningBest


class UnfilteredRows:
    """Keeps the running best of the scores or, where the rows have a temperature, of the Gumbel-max trick.

    Args:
        rows: all of them greedy, or none.
        device: of the scores.
    """

    def __init__(self, rows: Rows, device: torch.device) -> None:
        self._best = RunningBest(len(rows), device)
        self._keys: Tensor | None = None
        if rows.controls[0].temperature > 0:
            self._keys = row_keys(rows.controls, device)
            self._temperature = torch.tensor([[c.temperature] for c in rows.controls], device=device)
        self.uncertain = 0

    def add(self, scores: Tensor, start: int) -> None:
        """Takes the next tile's fp32 scores of these rows, `[rows, width]`; `start` is its first token."""
        values = scores
        if self._keys is not None:
            token_ids = torch.arange(start, start + scores.shape[1], device=scores.device)
            values = gumbel(self._keys, token_ids).add_(scores / self._temperature)
        self._best.add(values, scores, start)

    def choose(self, walk: Walk) -> tuple[list[int], list[float]]:
        """Token ids and their scores; no second walk is ever needed.

        Raises:
            FloatingPointError: a score was no number.
        """
        del walk
        if any(map(math.isnan, listed(self._best.value))):
            raise FloatingPointError("the model's scores are not numbers")
        return listed(self._best.token), listed(self._best.score)
