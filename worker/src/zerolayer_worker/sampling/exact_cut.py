"""The filters' exact cut anywhere in the vocabulary, in memory that does not grow with it.

The cut is found by descending through the 32 ordered bits of the scores, some bits per walk over the
head: each walk counts and weighs the tokens per value of the next bits. One more walk draws.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from zerolayer_worker.sampling.noise import gumbel
from zerolayer_worker.sampling.order import ordered_bits
from zerolayer_worker.sampling.provider import SamplingControls

# Widths of the three descents; their sum is the width of an ordered score.
_DIGITS = (11, 11, 10)
_UNLIMITED = 1 << 40

Walk = Callable[[], Iterator[tuple[Tensor, Tensor]]]


class ExactDraw:
    """Draws for rows whose cut lies beyond the list of best tokens.

    Args:
        walk: yields every tile's token ids `[width]` and fp32 scores `[rows, width]` anew at each call.
        controls: one per row.
        keys: noise streams `[rows, 1]`.
        best: each row's highest score, fp64 `[rows]`.
        log_total: log-sum-exp of the scores over temperature, fp64 `[rows]`; read only for rows with top-p.
    """

    def __init__(
        self, walk: Walk, controls: Sequence[SamplingControls], keys: Tensor, best: Tensor, log_total: Tensor
    ) -> None:
        self._walk = walk
        self._keys = keys
        self._best = best
        self._temperature = self._column([c.temperature for c in controls])
        self._total = (log_total[:, None] - best[:, None] / self._temperature).exp()
        self._top_k = self._column([c.top_k or _UNLIMITED for c in controls])
        self._top_p = self._column([c.top_p for c in controls])
        self._floor = self._column([math.log(c.min_p) if c.min_p else -math.inf for c in controls])

    def draw(self) -> tuple[Tensor, Tensor]:
        """Token ids and their scores, both `[rows]`."""
        anything, everything = (
            torch.full_like(self._total, math.inf),
            torch.full_like(self._total, _UNLIMITED),
        )
        cut, ties, mass = self._descend(self._top_k, anything)
        by_mass = torch.where(self._top_p < 1, self._top_p * mass, math.inf)
        nucleus_cut, nucleus_ties, _ = self._descend(everything, by_mass)
        tighter = (nucleus_cut > cut) | ((nucleus_cut == cut) & (nucleus_ties < ties))
        return self._best_of(torch.where(tighter, nucleus_cut, cut), torch.where(tighter, nucleus_ties, ties))

    def _column(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._keys.device)[:, None]

    def _scaled(self, scores: Tensor) -> Tensor:
        return scores.double() / self._temperature

    def _weights(self, scores: Tensor) -> Tensor:
        return (self._scaled(scores) - (self._best[:, None] / self._temperature)).exp()

    def _descend(self, count: Tensor, mass: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The shortest prefix of the ranking that reaches `count` tokens or `mass`; all `[rows, 1]`.

        Returns:
            The ordered bits of the prefix's last score, how many tokens of just that score belong to it,
            and the prefix's mass. Where neither limit is reached that is the whole vocabulary.
        """
        if not bool(((count < _UNLIMITED) | (mass < math.inf)).any()):
            lowest = torch.full_like(count, -(1 << 31), dtype=torch.int64)
            return lowest, torch.full_like(lowest, _UNLIMITED), self._total
        prefix = torch.zeros_like(count, dtype=torch.int64)
        above_count, above_mass = torch.zeros_like(count), torch.zeros_like(mass)
        inside_count, inside_mass = above_count, above_mass
        shift = 32
        for width in _DIGITS:
            shift -= width
            counts, masses = self._histograms(prefix, shift, width)
            running_count = above_count + counts.cumsum(dim=1)
            running_mass = above_mass + masses.cumsum(dim=1)
            open_bins = (running_count < count) & (running_mass < mass)
            last = counts.shape[1] - 1
            chosen = open_bins.sum(dim=1, keepdim=True).clamp(max=last)
            inside_count, inside_mass = counts.gather(1, chosen), masses.gather(1, chosen)
            above_count = running_count.gather(1, chosen) - inside_count
            above_mass = running_mass.gather(1, chosen) - inside_mass
            prefix = (prefix << width) | (last - chosen)
        each = inside_mass / inside_count.clamp(min=1)
        by_mass = ((mass - above_mass) / each.clamp(min=1e-300)).ceil()
        ties = torch.minimum(torch.minimum(count - above_count, by_mass), inside_count).clamp(min=1)
        return prefix - (1 << 31), ties.long(), above_mass + ties * each

    def _histograms(self, prefix: Tensor, shift: int, width: int) -> tuple[Tensor, Tensor]:
        """Number and mass of the tokens under `prefix` per value of the next `width` bits, highest first."""
        bins = 1 << width
        counts = torch.zeros(prefix.shape[0], bins, dtype=torch.float64, device=prefix.device)
        masses = torch.zeros_like(counts)
        for _, scores in self._walk():
            bits = ordered_bits(scores).long() + (1 << 31)
            inside = (bits >> (shift + width)) == prefix
            place = bins - 1 - ((bits >> shift) & (bins - 1))
            counts.scatter_add_(1, place, inside.double())
            masses.scatter_add_(1, place, self._weights(scores) * inside)
        return counts, masses

    def _best_of(self, cut: Tensor, ties: Tensor) -> tuple[Tensor, Tensor]:
        """Gumbel-max over the tokens above `cut` and the first `ties` ones at it that min-p keeps too."""
        best = torch.full_like(self._best, -math.inf)
        chosen = torch.zeros_like(best, dtype=torch.int64)
        chosen_score = torch.zeros_like(best)
        seen = torch.zeros_like(ties)
        lowest = self._best[:, None] / self._temperature + self._floor
        for token_ids, scores in self._walk():
            bits, scaled = ordered_bits(scores).long(), self._scaled(scores)
            equal = bits == cut
            rank = seen + equal.cumsum(dim=1)
            seen = rank[:, -1:]
            kept = ((bits > cut) | (equal & (rank <= ties))) & (scaled >= lowest)
            noisy = (scaled + gumbel(self._keys, token_ids)).masked_fill(~kept, -math.inf)
            value, place = noisy.max(dim=1)
            better = value > best
            best = torch.where(better, value, best)
            chosen = torch.where(better, token_ids[place], chosen)
            chosen_score = torch.where(better, scores.gather(1, place[:, None])[:, 0].double(), chosen_score)
        return chosen, chosen_score
