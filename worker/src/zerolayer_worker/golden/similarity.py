"""How alike two answers are: the cosine of the base model's mean-pooled final hidden states."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from zerolayer_worker.models.dense import load_dense
from zerolayer_worker.models.packing import pack
from zerolayer_worker.models.tokenizer import ModelTokenizer

HIGHEST_THRESHOLD: Final = 0.98
"""More is asked of nobody: two answers this close say the same."""

QUANTILE: Final = 0.05
MAX_TOKENS: Final = 1024


class Embedder:
    """The base model as a judge of meaning; one for both sides, so that no anchor judges itself."""

    def __init__(self, folder: Path) -> None:
        """Loads the model on the CPU.

        Raises:
            ModelFolderError: as `load_dense`.
        """
        self._model = load_dense(folder)
        self._tokenizer = ModelTokenizer(folder)
        self._known: dict[str, Tensor] = {}

    def similarity(self, first: str, second: str) -> float:
        """In [-1, 1]; 1 for equal answers, also for empty ones, and 0 where one alone is empty."""
        if first == second:
            return 1.0
        if not first.strip() or not second.strip():
            return 0.0
        return float(cosine_similarity(self._embedded(first), self._embedded(second), dim=0))

    @torch.inference_mode()
    def _embedded(self, text: str) -> Tensor:
        if text not in self._known:
            ids = self._tokenizer.encode_continuation(text)[:MAX_TOKENS]
            self._known[text] = self._model.hidden(pack([ids])).mean(dim=0)
        return self._known[text]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where a difference begins to count.

    Attributes:
        value: answers that are less alike have changed.
        calibrated: how alike blue's own answers to one question were, drawn twice.
    """

    value: float
    calibrated: tuple[float, ...]


def threshold(calibrated: Sequence[float], fixed: float | None) -> Threshold:
    """Answers of both sides may differ as much as those of one side, drawn twice, usually do.

    The value is the lowest twentieth of the calibration, at most `HIGHEST_THRESHOLD`; `fixed` overrides it.
    """
    ordered = sorted(calibrated)
    if fixed is not None:
        return Threshold(fixed, tuple(ordered))
    lowest = ordered[int(QUANTILE * len(ordered))] if ordered else HIGHEST_THRESHOLD
    return Threshold(min(HIGHEST_THRESHOLD, lowest), tuple(ordered))
