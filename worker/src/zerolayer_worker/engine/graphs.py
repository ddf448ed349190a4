"""Decode steps of a few sizes, captured once each and replayed.

What captures is handed in: this module knows sizes, tables and replays, but no CUDA.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.models.step_rows import TABLES, step_rows

Replay = Callable[[], Tensor]
"""Runs what was captured once more; returns the same tensor each time, with new contents."""

Capture = Callable[[Callable[[], Tensor]], Replay]
"""Runs a function whose tensors stay where they are, and records what it does on the device."""


def step_sizes(rows: int) -> tuple[int, ...]:
    """What steps of up to `rows` rows are filled up to: the powers of two below, and `rows`; ascending."""
    return (*(1 << power for power in range((rows - 1).bit_length())), rows)


@dataclass(frozen=True, slots=True)
class _Captured:
    """`rows` int32 `[2 + pages, size]` is what `replay` reads; see `step_rows`."""

    rows: Tensor
    replay: Replay


class DecodeGraphs:
    """Replays the step of just the size that it is asked for."""

    def __init__(
        self,
        step: Callable[[Tensor], Tensor],
        sizes: Sequence[int],
        *,
        pages: int,
        page: int,
        device: torch.device,
        capture: Capture,
    ) -> None:
        """Captures all sizes.

        Args:
            step: from `step_rows` to final hidden states `[rows, hidden_size]`; see `Transformer.step`.
            sizes: numbers of rows.
            pages: of the longest sequence.
            page: tokens of a page.
            device: of the tensors.
            capture: what captures; an error of its ends this.
        """
        self._page, self._device = page, device
        self._captured: dict[int, _Captured] = {}
        # The largest first: what the others need besides fits into the memory that it took.
        for size in sorted(sizes, reverse=True):
            # Lengths of 0: nothing is read or written while capturing.
            rows = torch.zeros(TABLES + pages, size, dtype=torch.int32, device=device)
            self._captured[size] = _Captured(rows, capture(_bound(step, rows)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """What was captured, ascending."""
        return tuple(sorted(self._captured))

    def run(
        self, token_ids: Sequence[int], positions: Sequence[int], tables: Sequence[Sequence[int]]
    ) -> Tensor | None:
        """As `Transformer.decode`; the result holds until the next step.

        Returns:
            Final hidden states `[rows, hidden_size]`; None where no step of this size was captured.
        """
        captured = self._captured.get(len(token_ids))
        if captured is None:
            return None
        given = step_rows(token_ids, positions, tables, page=self._page, device=self._device)
        # Pages of earlier steps that stay behind these are beyond each row's length.
        captured.rows[: given.shape[0]].copy_(given)
        return captured.replay()


def _bound(step: Callable[[Tensor], Tensor], rows: Tensor) -> Callable[[], Tensor]:
    return lambda: step(rows)
