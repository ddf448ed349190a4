"""Chooses tokens while walking the LM head; scores of the whole vocabulary never exist at once.

One walk keeps, per row, what the row needs: the running best (greedy rows, and rows drawn from the
unfiltered distribution, by the Gumbel-max trick), or the list of best tokens and the log-sum-exp. Filters
are decided from that list; where they can't be, `ExactDraw` walks again. Memory is rows * tile.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from zerolayer_worker.sampling.filtered import FilteredRows
from zerolayer_worker.sampling.penalties import Penalties
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls, Tile
from zerolayer_worker.sampling.report import Report
from zerolayer_worker.sampling.rows import Rows
from zerolayer_worker.sampling.unfiltered import UnfilteredRows

CANDIDATES = 256


class TiledSampler:
    """The sampler that serves; see `SamplerProvider`."""

    def __init__(self, head: Head, candidates: int = CANDIDATES) -> None:
        """`candidates` is the length of the list of best tokens that filters are decided from."""
        self._head = head
        self._candidates = candidates
        self.second_passes = 0

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider.sample`."""
        step = _Step(self._head, hidden, controls, self._candidates)
        step.walk_head()
        choices = step.choices()
        self.second_passes += step.uncertain
        return choices


class _Step:
    """One sampling step: which rows need what, and what the walk has found for them so far."""

    def __init__(
        self, head: Head, hidden: Tensor, controls: Sequence[SamplingControls], candidates: int
    ) -> None:
        self._head = head
        self._hidden = hidden
        self._controls = controls
        self._device = device = hidden.device
        self._penalties = Penalties.of(controls, device)
        greedy = self._rows(c.temperature == 0 for c in controls)
        drawn = self._rows(c.temperature > 0 and not c.filtered for c in controls)
        filtered = self._rows(c.filtered for c in controls)
        self._choosers: list[tuple[Rows, UnfilteredRows | FilteredRows]] = [
            (rows, UnfilteredRows(rows, device)) for rows in (greedy, drawn) if rows
        ]
        if filtered:
            chooser = FilteredRows(filtered, candidates, head.vocab_size, device)
            self._choosers.append((filtered, chooser))
        self._reported = self._rows(c.logprobs is not None for c in controls)
        self._report = Report(self._reported, head.vocab_size, device) if self._reported else None
        self.uncertain = 0

    def walk_head(self) -> None:
        """The walk that every step makes."""
        for tile in self._head.tiles:
            raw = self._raw(tile)
            scores = self._penalised(raw, tile)
            for rows, chooser in self._choosers:
                chooser.add(rows.take(scores), tile.start)
            if self._report is not None:
                self._report.add(self._reported.take(raw), tile.start)

    def choices(self) -> list[Choice]:
        """The outcome, one per row; walks again where filters need it."""
        tokens, scores = [0] * len(self._controls), [0.0] * len(self._controls)
        for rows, chooser in self._choosers:
            for row, token, score in zip(rows.numbers, *chooser.choose(self._walk), strict=True):
                tokens[row], scores[row] = token, score
            self.uncertain += chooser.uncertain
        result = [Choice(token) for token in tokens]
        if self._report is None:
            return result
        numbers = self._reported.numbers
        raw = [self._raw_score(row, tokens[row], scores[row]) for row in numbers]
        reports = self._report.choices([tokens[row] for row in numbers], raw)
        for row, choice in zip(numbers, reports, strict=True):
            result[row] = choice
        return result

    def _rows(self, chosen: Iterator[bool]) -> Rows:
        return Rows.of((row for row, wanted in enumerate(chosen) if wanted), self._controls, self._device)

    def _walk(self) -> Iterator[tuple[Tensor, Tensor]]:
        for tile in self._head.tiles:
            token_ids = torch.arange(tile.start, tile.start + tile.width, device=self._device)
            yield token_ids, self._penalised(self._raw(tile), tile)

    def _raw(self, tile: Tile) -> Tensor:
        """Rows beyond the controls only fill the product up."""
        return tile.scores(self._hidden)[: len(self._controls)]

    def _penalised(self, scores: Tensor, tile: Tile) -> Tensor:
        return scores if self._penalties is None else self._penalties.apply(scores, tile.start)

    def _raw_score(self, row: int, token: int, score: float) -> float:
        found = None if self._penalties is None else self._penalties.raw_score(row, token)
        return score if found is None else found
