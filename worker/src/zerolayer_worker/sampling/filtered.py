"""The rows that choose among the best tokens only."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from zerolayer_worker.sampling.best_list import BestList
from zerolayer_worker.sampling.drawing import draw
from zerolayer_worker.sampling.exact_cut import ExactDraw, Walk
from zerolayer_worker.sampling.filters import judge
from zerolayer_worker.sampling.mass import LogSumExp
from zerolayer_worker.sampling.noise import row_keys
from zerolayer_worker.sampling.rows import Rows, listed


class FilteredRows:
    """Keeps the list of best tokens and, for rows with top-p, the mass of all; decides after the walk.

    Args:
        rows: those with filters.
        candidates: length of the list.
        vocab_size: number of tokens there are.
        device: of the scores.
    """

    def __init__(self, rows: Rows, candidates: int, vocab_size: int, device: torch.device) -> None:
        self._rows = rows
        self._vocab_size = vocab_size
        self._device = device
        self._list = BestList(len(rows), min(candidates, vocab_size), device)
        controls = rows.controls
        self._weighed = Rows.of((i for i, c in enumerate(controls) if c.top_p < 1), controls, device)
        temperature = torch.tensor([[c.temperature] for c in self._weighed.controls], device=device)
        self._mass = LogSumExp(temperature)
        self.uncertain = 0

    def add(self, scores: Tensor, start: int) -> None:
        """Takes the next tile's fp32 scores of these rows, `[rows, width]`; `start` is its first token."""
        self._list.add(scores, start)
        if self._weighed:
            self._mass.add(self._weighed.take(scores))

    def choose(self, walk: Walk) -> tuple[list[int], list[float]]:
        """Token ids and their scores.

        Args:
            walk: yields every tile's token ids `[width]` and scores of *all* the step's rows once more;
                called only where the list can't decide.

        Raises:
            FloatingPointError: a score was no number.
        """
        scores, token_ids = self._list.result()
        if not bool((scores[:, 0] < math.inf).all()):
            raise FloatingPointError("the model's scores are not numbers")
        scores = scores.double()
        temperature = self._column([c.temperature for c in self._rows.controls])
        scaled = scores / temperature
        total = self._log_total()
        verdict = judge(scaled, total, self._rows.controls, self._vocab_size)
        place = draw(scaled, token_ids, verdict.kept, self._rows.controls)
        tokens = listed(token_ids.gather(1, place)[:, 0])
        found = listed(scores.gather(1, place)[:, 0])
        if not bool(verdict.certain.all()):
            self._draw_again(walk, listed(verdict.certain), (scores[:, 0], total), (tokens, found))
        return tokens, found

    def _column(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._device)[:, None]

    def _log_total(self) -> Tensor:
        if len(self._weighed) == len(self._rows):
            return self._mass.result()
        total = torch.zeros(len(self._rows), dtype=torch.float64, device=self._device)
        if self._weighed.index is not None:
            total[self._weighed.index] = self._mass.result()
        return total

    def _draw_again(
        self,
        walk: Walk,
        certain: list[bool],
        known: tuple[Tensor, Tensor],
        outcome: tuple[list[int], list[float]],
    ) -> None:
        """Replaces the outcome of the rows that the list could not decide."""
        controls = self._rows.controls
        again = Rows.of((i for i, sure in enumerate(certain) if not sure), controls, self._device)
        self.uncertain = len(again)

        def rows_of_walk() -> Iterator[tuple[Tensor, Tensor]]:
            for token_ids, scores in walk():
                yield token_ids, again.take(self._rows.take(scores))

        best, log_total = (again.take(values) for values in known)
        keys = row_keys(again.controls, self._device)
        drawn = ExactDraw(rows_of_walk, again.controls, keys, best, log_total).draw()
        tokens, scores = (listed(values) for values in drawn)
        for row, token, score in zip(again.numbers, tokens, scores, strict=True):
            outcome[0][row], outcome[1][row] = token, score
