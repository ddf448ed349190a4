"""Chooses tokens while walking the LM head; scores of the whole vocabulary never exist at once.

One walk keeps, per row, what the row needs: the running best (greedy rows, and rows drawn from the
unfiltered distribution, by the Gumbel-max trick), or the list of best tokens and the log-sum-exp. Filters
are decided from that list; where they can't be, `ExactDraw` walks again. Memory: rows × tile.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from zerolayer_worker.sampling.exact_cut import ExactDraw
from zerolayer_worker.sampling.filters import judge
from zerolayer_worker.sampling.mass import LogSumExp
from zerolayer_worker.sampling.noise import gumbel, key_tensor, stream_key
from zerolayer_worker.sampling.order import key_scores, key_token_ids, rank_keys
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls, Tile

CANDIDATES = 256


class TiledSampler:
    """The sampler that serves; see `SamplerProvider`."""

    def __init__(self, head: Head, candidates: int = CANDIDATES) -> None:
        """`candidates` is the length of the list of best tokens."""
        self._head = head
        self._candidates = candidates
        self.second_passes = 0

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider.sample`."""
        step = _Step(self._head, hidden, controls, min(self._candidates, self._head.vocab_size))
        step.first_pass()
        step.decide_filtered()
        self.second_passes += step.uncertain
        return step.choices()


class _Step:
    """One sampling step: which rows need what, and what the walk has found for them so far."""

    def __init__(
        self, head: Head, hidden: Tensor, controls: Sequence[SamplingControls], candidates: int
    ) -> None:
        self._head = head
        self._hidden = hidden
        self._controls = controls
        self._candidates = candidates
        self._device = hidden.device
        rows = range(len(controls))
        self._plain = self._rows(i for i in rows if not controls[i].filtered)
        self._filtered = self._rows(i for i in rows if controls[i].filtered)
        self._reported = [i for i in rows if controls[i].logprobs is not None]
        self._listed = self._rows(i for i in rows if controls[i].filtered or controls[i].logprobs)
        self._weighed = self._rows(i for i in rows if controls[i].filtered and controls[i].top_p < 1)
        self._summed = self._rows(self._reported)
        self._temperature = torch.tensor([c.temperature or 1.0 for c in controls], device=self._device)[
            :, None
        ]
        self._keys = key_tensor((stream_key(c.seed, c.position) for c in controls), self._device)
        self._best = torch.full((len(controls),), -math.inf, device=self._device)
        self._score = torch.zeros(len(controls), dtype=torch.float64, device=self._device)
        self._token = torch.zeros(len(controls), dtype=torch.int64, device=self._device)
        self._list = torch.empty(len(self._listed), 0, dtype=torch.int64, device=self._device)
        self._raw_mass, self._scaled_mass = LogSumExp(), LogSumExp()
        self.uncertain = 0

    def first_pass(self) -> None:
        """Walks the head once."""
        for tile in self._head.tiles:
            scores = self._scores(tile)
            token_ids = torch.arange(tile.start, tile.start + tile.width, device=self._device)
            if len(self._plain):
                self._keep_best(scores, token_ids)
            if len(self._listed):
                self._keep_list(scores[self._listed], token_ids)
            if len(self._weighed):
                self._scaled_mass.add(scores[self._weighed] / self._temperature[self._weighed])
            if len(self._summed):
                self._raw_mass.add(scores[self._summed])

    def decide_filtered(self) -> None:
        """Chooses for the rows with filters, walking the head again for those the list can't decide."""
        if not len(self._filtered):
            return
        controls = [self._controls[i] for i in self._filtered.tolist()]
        keys = self._list[torch.isin(self._listed, self._filtered)]
        scores, token_ids = key_scores(keys).double(), key_token_ids(keys)
        scaled = scores / self._temperature[self._filtered]
        total = torch.zeros(len(self._controls), dtype=torch.float64, device=self._device)
        if len(self._weighed):
            total[self._weighed] = self._scaled_mass.result()
        verdict = judge(scaled, total[self._filtered], controls, self._head.vocab_size)

        kept = torch.arange(scaled.shape[1], device=self._device) < verdict.kept[:, None]
        noisy = (scaled + gumbel(self._keys[self._filtered], token_ids)).masked_fill(~kept, -math.inf)
        winners = noisy == noisy.amax(dim=1, keepdim=True)
        place = token_ids.masked_fill(~winners, self._head.vocab_size).argmin(dim=1, keepdim=True)
        self._token[self._filtered] = token_ids.gather(1, place)[:, 0]
        self._score[self._filtered] = scores.gather(1, place)[:, 0]
        self._best[self._filtered] = scores[:, 0].float()
        self._draw_again(self._filtered[~verdict.certain])

    def choices(self) -> list[Choice]:
        """The outcome, one per row."""
        if bool(self._best.isnan().any()):
            raise FloatingPointError("the model's scores are not numbers")
        tokens = self._token.tolist()
        if not self._reported:
            return [Choice(token) for token in tokens]
        sums = dict(zip(self._reported, self._raw_mass.result().tolist(), strict=True))
        place = {row: index for index, row in enumerate(self._listed.tolist())}
        return [self._report(row, token, sums, place) for row, token in enumerate(tokens)]

    def _report(self, row: int, token: int, sums: dict[int, float], place: dict[int, int]) -> Choice:
        wanted = self._controls[row].logprobs
        if wanted is None:
            return Choice(token)
        best = self._list[place[row], :wanted] if wanted else self._list.new_empty(0)
        scores = (key_scores(best).double() - sums[row]).tolist()
        top = tuple(zip(key_token_ids(best).tolist(), scores, strict=True))
        return Choice(token, float(self._score[row]) - sums[row], top)

    def _rows(self, rows: "Iterator[int] | list[int]") -> Tensor:
        return torch.tensor(list(rows), dtype=torch.int64, device=self._device)

    def _scores(self, tile: Tile) -> Tensor:
        """Rows beyond the controls only fill the product up."""
        return tile.scores(self._hidden)[: len(self._controls)]

    def _keep_best(self, scores: Tensor, token_ids: Tensor) -> None:
        value = scores
        drawn = self._rows(i for i in self._plain.tolist() if self._controls[i].temperature > 0)
        if len(drawn):
            value = scores.clone()
            value[drawn] = scores[drawn] / self._temperature[drawn] + gumbel(self._keys[drawn], token_ids)
        # `max` reports the first of equal values, and tiles come in the order of ids.
        best, place = value[self._plain].max(dim=1)
        better = (best > self._best[self._plain]) | best.isnan()
        rows = self._plain[better]
        self._best[rows] = best[better]
        self._token[rows] = token_ids[place[better]]
        self._score[rows] = scores[rows, place[better]].double()

    def _keep_list(self, scores: Tensor, token_ids: Tensor) -> None:
        keys = rank_keys(scores, token_ids)
        best = keys.topk(min(self._candidates, keys.shape[1]), dim=1).values
        merged = torch.cat((self._list, best), dim=1)
        self._list = merged.topk(min(self._candidates, merged.shape[1]), dim=1).values

    def _draw_again(self, rows: Tensor) -> None:
        self.uncertain = len(rows)
        if not self.uncertain:
            return

        def walk() -> Iterator[tuple[Tensor, Tensor]]:
            for tile in self._head.tiles:
                token_ids = torch.arange(tile.start, tile.start + tile.width, device=self._device)
                yield token_ids, self._scores(tile)[rows]

        controls = [self._controls[i] for i in rows.tolist()]
        draw = ExactDraw(walk, controls, self._keys[rows], self._best[rows].double())
        self._token[rows], self._score[rows] = draw.draw()
