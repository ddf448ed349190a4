"""Repetition, presence and frequency penalties on one tile's scores at a time.

Repetition (Keskar et al., arXiv 1909.05858, as in `transformers` and vLLM): a score above zero of a token
that prompt or answer holds is divided by the penalty, any other one multiplied. Then, as OpenAI's API has
it, frequency times the token's count in the answer is subtracted, and presence where that is not zero.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.rows import tensor_of


class Penalties:
    """The penalties of a step's rows. One entry per row and token that the row's text holds.

    Memory and time go with the number of entries, not with the vocabulary.
    """

    def __init__(self, controls: Sequence[SamplingControls], device: torch.device) -> None:
        """Takes the controls of all rows, in the order of the scores' rows; some of them penalise."""
        penalised = [(row, c, c.history) for row, c in enumerate(controls) if c.history is not None]
        lengths = [len(history.ids) for _, _, history in penalised]
        self._ids = _joined([history.ids for _, _, history in penalised], np.int64)
        self._rows = np.repeat([row for row, _, _ in penalised], lengths)
        counts = _joined([history.counts for _, _, history in penalised], np.int32)

        def each(values: Sequence[float]) -> Tensor:
            return tensor_of(np.repeat(np.array(values, np.float32), lengths)).to(device)

        appeared = tensor_of(counts).to(device=device, dtype=torch.float32)
        self._repetition = each([c.repetition_penalty for _, c, _ in penalised])
        self._frequency = each([c.frequency_penalty for _, c, _ in penalised]) * appeared
        self._presence = each([c.presence_penalty for _, c, _ in penalised]) * (appeared > 0)
        self._raw = torch.zeros(len(self._ids), device=device)

    @classmethod
    def of(cls, controls: Sequence[SamplingControls], device: torch.device) -> "Penalties | None":
        """None where no row has any."""
        return cls(controls, device) if any(c.history is not None for c in controls) else None

    def apply(self, scores: Tensor, start: int) -> Tensor:
        """A tile's fp32 scores `[rows, width]` with the penalties; `start` is its first token.

        The scores given stay as they are: where any is penalised the result is a copy.
        """
        places = np.flatnonzero((self._ids >= start) & (self._ids < start + scores.shape[1]))
        if not len(places):
            return scores
        entries, rows, columns = (
            tensor_of(part).to(scores.device)
            for part in (places, self._rows[places], self._ids[places] - start)
        )
        found = scores[rows, columns]
        self._raw[entries] = found
        repetition = self._repetition[entries]
        changed = torch.where(found > 0, found / repetition, found * repetition)
        changed = changed - self._frequency[entries] - self._presence[entries]
        return scores.index_put((rows, columns), changed)

    def raw_score(self, row: int, token_id: int) -> float | None:
        """A token's score before the penalties, after the walk; None where the row's text lacks it."""
        places = np.flatnonzero((self._rows == row) & (self._ids == token_id))
        return float(self._raw[int(places[0])]) if len(places) else None


def _joined(
    parts: Sequence[object], kind: type[np.int64 | np.int32]
) -> NDArray[np.int64] | NDArray[np.int32]:
    """A copy, so that the sequences' own arrays stay free to grow."""
    return np.concatenate([np.frombuffer(part, kind) for part in parts])  # type: ignore[call-overload]
