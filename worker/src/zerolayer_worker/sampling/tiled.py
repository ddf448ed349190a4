"""Chooses tokens while walking the LM head; scores of the whole vocabulary never exist at once.

One walk keeps, per row, what the row needs: the running best (greedy rows, and rows drawn from the
unfiltered distribution, by the Gumbel-max trick), or the list of best tokens and the log-sum-exp. Filters
are decided from that list; where they can't be, `ExactDraw` walks again. Memory is rows * tile.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zerolayer_worker.sampling.exact_cut import ExactDraw
from zerolayer_worker.sampling.filters import judge
from zerolayer_worker.sampling.mass import LogSumExp
from zerolayer_worker.sampling.noise import gumbel, key_tensor, stream_key
from zerolayer_worker.sampling.order import key_scores, key_token_ids, rank_keys
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls, Tile

CANDIDATES = 256
_PART = 2048


class TiledSampler:
    """The sampler that serves; see `SamplerProvider`."""

    def __init__(self, head: Head, candidates: int = CANDIDATES) -> None:
        """`candidates` is the length of the list of best tokens; also the most alternatives reported."""
        self._head = head
        self._candidates = candidates
        self.second_passes = 0

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider.sample`."""
        step = _Step(self._head, hidden, controls, min(self._candidates, self._head.vocab_size))
        step.walk_head()
        step.decide_filtered()
        self.second_passes += step.uncertain
        return step.choices()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some of the step's rows, as numbers and as an index."""

    numbers: tuple[int, ...]
    index: Tensor

    @classmethod
    def of(cls, numbers: Iterator[int], device: torch.device) -> "_Rows":
        found = tuple(numbers)
        return cls(found, torch.tensor(found, dtype=torch.int64, device=device))

    def __bool__(self) -> bool:
        return bool(self.numbers)


class _Step:
    """One sampling step: which rows need what, and what the walk has found for them so far."""

    def __init__(
        self, head: Head, hidden: Tensor, controls: Sequence[SamplingControls], candidates: int
    ) -> None:
        self._head = head
        self._hidden = hidden
        self._controls = controls
        self._candidates = candidates
        self._device = device = hidden.device
        numbered = list(enumerate(controls))
        self._plain = _Rows.of((i for i, c in numbered if not c.filtered), device)
        self._drawn = _Rows.of((i for i, c in numbered if not c.filtered and c.temperature > 0), device)
        self._filtered = _Rows.of((i for i, c in numbered if c.filtered), device)
        self._listed = _Rows.of((i for i, c in numbered if c.filtered or c.logprobs), device)
        self._weighed = _Rows.of((i for i, c in numbered if c.filtered and c.top_p < 1), device)
        self._reported = _Rows.of((i for i, c in numbered if c.logprobs is not None), device)
        self._temperature = torch.tensor([c.temperature or 1.0 for c in controls], device=device)[:, None]
        self._keys = key_tensor((stream_key(c.seed, c.position) for c in controls), device)
        self._best = torch.full((len(controls),), -math.inf, device=device)
        self._score = torch.zeros(len(controls), dtype=torch.float64, device=device)
        self._token = torch.zeros(len(controls), dtype=torch.int64, device=device)
        self._log_total = torch.zeros(len(controls), dtype=torch.float64, device=device)
        self._list = torch.empty(len(self._listed.numbers), 0, dtype=torch.int64, device=device)
        self._raw_mass, self._scaled_mass = LogSumExp(), LogSumExp()
        self.uncertain = 0

    def walk_head(self) -> None:
        """The walk that every step makes."""
        for tile in self._head.tiles:
            scores = self._scores(tile)
            token_ids = self._token_ids(tile)
            if self._plain:
                self._keep_best(scores, token_ids)
            if self._listed:
                self._keep_list(self._of(self._listed, scores), token_ids)
            if self._weighed:
                temperature = self._of(self._weighed, self._temperature)
                self._scaled_mass.add(self._of(self._weighed, scores) / temperature)
            if self._reported:
                self._raw_mass.add(self._of(self._reported, scores))

    def decide_filtered(self) -> None:
        """Chooses for the rows with filters, walking the head again for those the list can't decide."""
        if not self._filtered:
            return
        rows = self._filtered.index
        keys = self._list[torch.isin(self._listed.index, rows)]
        scores, token_ids = key_scores(keys).double(), key_token_ids(keys)
        scaled = scores / self._temperature[rows]
        if self._weighed:
            self._log_total[self._weighed.index] = self._scaled_mass.result()
        controls = [self._controls[i] for i in self._filtered.numbers]
        verdict = judge(scaled, self._log_total[rows], controls, self._head.vocab_size)

        kept = torch.arange(scaled.shape[1], device=self._device) < verdict.kept[:, None]
        noisy = (scaled + gumbel(self._keys[rows], token_ids)).masked_fill(~kept, -math.inf)
        winners = noisy == noisy.amax(dim=1, keepdim=True)
        place = token_ids.masked_fill(~winners, self._head.vocab_size).argmin(dim=1, keepdim=True)
        self._token[rows] = token_ids.gather(1, place)[:, 0]
        self._score[rows] = scores.gather(1, place)[:, 0]
        self._best[rows] = scores[:, 0].float()
        certain = _numbers(verdict.certain)
        pairs = zip(self._filtered.numbers, certain, strict=True)
        self._draw_again(_Rows.of((i for i, sure in pairs if not sure), self._device))

    def choices(self) -> list[Choice]:
        """The outcome, one per row."""
        if bool(self._best.isnan().any()):
            raise FloatingPointError("the model's scores are not numbers")
        tokens = _numbers(self._token)
        if not self._reported:
            return [Choice(token) for token in tokens]
        sums = _numbers(self._raw_mass.result())
        by_row = dict(zip(self._reported.numbers, sums, strict=True))
        return [self._report(row, token, by_row.get(row)) for row, token in enumerate(tokens)]

    def _report(self, row: int, token: int, log_sum: float | None) -> Choice:
        if log_sum is None:
            return Choice(token)
        chosen = float(self._score[row]) - log_sum
        wanted = self._controls[row].logprobs
        if not wanted:
            return Choice(token, chosen)
        best = self._list[self._listed.numbers.index(row), :wanted]
        ids = _numbers(key_token_ids(best))
        logprobs = _numbers(key_scores(best).double() - log_sum)
        return Choice(token, chosen, tuple(zip(ids, logprobs, strict=True)))

    def _scores(self, tile: Tile) -> Tensor:
        """Rows beyond the controls only fill the product up."""
        return tile.scores(self._hidden)[: len(self._controls)]

    def _of(self, rows: _Rows, tensor: Tensor) -> Tensor:
        """These rows of the step's; no copy if they are all there are."""
        return tensor if len(rows.numbers) == len(self._controls) else tensor[rows.index]

    def _token_ids(self, tile: Tile) -> Tensor:
        return torch.arange(tile.start, tile.start + tile.width, device=self._device)

    def _keep_best(self, scores: Tensor, token_ids: Tensor) -> None:
        value = scores
        if self._drawn:
            rows = self._drawn.index
            value = scores.clone()
            value[rows] = scores[rows] / self._temperature[rows] + gumbel(self._keys[rows], token_ids)
        # `max` reports the first of equal values, and tiles come in the order of ids.
        best, place = self._of(self._plain, value).max(dim=1)
        better = (best > self._best[self._plain.index]) | best.isnan()
        rows, place = self._plain.index[better], place[better]
        self._best[rows] = best[better]
        self._token[rows] = token_ids[place]
        self._score[rows] = scores[rows, place].double()

    def _keep_list(self, scores: Tensor, token_ids: Tensor) -> None:
        """Keys take twice the room of scores, hence part by part."""
        for part, ids in zip(torch.split(scores, _PART, dim=1), torch.split(token_ids, _PART), strict=True):
            merged = torch.cat((self._list, rank_keys(part, ids)), dim=1)
            self._list = merged.topk(min(self._candidates, merged.shape[1]), dim=1).values

    def _draw_again(self, rows: _Rows) -> None:
        self.uncertain = len(rows.numbers)
        if not rows:
            return

        def walk() -> Iterator[tuple[Tensor, Tensor]]:
            for tile in self._head.tiles:
                yield self._token_ids(tile), self._of(rows, self._scores(tile))

        controls = [self._controls[i] for i in rows.numbers]
        best, log_total = self._best[rows.index].double(), self._log_total[rows.index]
        draw = ExactDraw(walk, controls, self._keys[rows.index], best, log_total)
        self._token[rows.index], self._score[rows.index] = draw.draw()


def _numbers(tensor: Any) -> list[Any]:
    """Torch's own stub says nothing about what is in the list."""
    return tensor.tolist()
