"""Log-probabilities of the model's own distribution, for the rows that ask for them."""

import torch
from torch import Tensor

from zerolayer_worker.sampling.best_list import BestList
from zerolayer_worker.sampling.mass import LogSumExp
from zerolayer_worker.sampling.provider import Choice
from zerolayer_worker.sampling.rows import Rows, listed


class Report:
    """Gathers what the log-probabilities of some rows need from the scores before penalties.

    Args:
        rows: all with `logprobs`.
        vocab_size: number of tokens there are.
        device: of the scores.
    """

    def __init__(self, rows: Rows, vocab_size: int, device: torch.device) -> None:
        self._rows = rows
        self._mass = LogSumExp()
        most = min(max(c.logprobs or 0 for c in rows.controls), vocab_size)
        self._list = BestList(len(rows), most, device) if most else None

    def add(self, scores: Tensor, start: int) -> None:
        """Takes the next tile's fp32 scores of these rows, `[rows, width]`; `start` is its first token."""
        self._mass.add(scores)
        if self._list is not None:
            self._list.add(scores, start)

    def choices(self, tokens: list[int], scores: list[float]) -> list[Choice]:
        """The choices of these rows, after the walk; `scores` are the tokens' own, before penalties."""
        totals = listed(self._mass.result())
        alternatives = self._alternatives()
        return [
            Choice(token, score - total, tuple((i, s - total) for i, s in best[: control.logprobs]))
            for token, score, total, best, control in zip(
                tokens, scores, totals, alternatives, self._rows.controls, strict=True
            )
        ]

    def _alternatives(self) -> list[list[tuple[int, float]]]:
        if self._list is None:
            return [[] for _ in self._rows.numbers]
        scores, token_ids = self._list.result()
        pairs = zip(listed(token_ids), listed(scores), strict=True)
        return [list(zip(ids, values, strict=True)) for ids, values in pairs]
