"""The oracle: full scores, a full sort, one softmax. Slow, large and easy to believe."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from zerolayer_worker.sampling.noise import gumbel, key_tensor, stream_key
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls


class NaiveSampler:
    """Computes every score before it chooses; `dtype` is that of everything after the product."""

    def __init__(self, head: Head, dtype: torch.dtype = torch.float64) -> None:
        self._head = head
        self._dtype = dtype
        self.second_passes = 0

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider.sample`."""
        scores = torch.cat([tile.scores(hidden) for tile in self._head.tiles], dim=1)
        return [
            self.choose(row.to(self._dtype), control) for row, control in zip(scores, controls, strict=False)
        ]

    def choose(self, scores: Tensor, control: SamplingControls) -> Choice:
        """One row: `scores` `[vocab]`."""
        if bool(scores.isnan().any()):
            raise FloatingPointError("the model's scores are not numbers")
        raw, scores = scores, penalised(scores, control)
        # A stable sort keeps equal scores in the order of their ids.
        ranking = torch.sort(scores, descending=True, stable=True).indices
        if control.temperature == 0:
            return self._report(int(ranking[0]), raw, control)
        probabilities = torch.softmax(scores / control.temperature, dim=-1)[ranking]
        kept = ranking[: kept_count(probabilities, control)]
        keys = key_tensor([stream_key(control.seed, control.position)], scores.device)
        noisy = scores[kept] / control.temperature + gumbel(keys, kept[None])[0].to(self._dtype)
        winners = kept[noisy == noisy.max()]
        return self._report(int(winners.min()), raw, control)

    def _report(self, token_id: int, scores: Tensor, control: SamplingControls) -> Choice:
        if control.logprobs is None:
            return Choice(token_id)
        ranking = torch.sort(scores, descending=True, stable=True).indices
        logprobs = torch.log_softmax(scores, dim=-1)
        top = tuple((int(i), float(logprobs[i])) for i in ranking[: control.logprobs])
        return Choice(token_id, float(logprobs[token_id]), top)


def penalised(scores: Tensor, control: SamplingControls) -> Tensor:
    """Scores `[vocab]` with the penalties, which are defined on fp32 as the product's outcome is."""
    if control.history is None:
        return scores
    seen = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    count = torch.zeros(scores.shape, dtype=torch.float32, device=scores.device)
    for token_id, times in zip(control.history.ids, control.history.counts, strict=True):
        seen[token_id], count[token_id] = True, times
    single = scores.float()
    scaled = torch.where(single > 0, single / control.repetition_penalty, single * control.repetition_penalty)
    single = torch.where(seen, scaled, single)
    single = single - control.frequency_penalty * count - control.presence_penalty * (count > 0)
    return single.to(scores.dtype)


def kept_count(probabilities: Tensor, control: SamplingControls) -> int:
    """How many of the `probabilities`, sorted in descending order, the filters keep; at least one."""
    kept = probabilities.shape[0]
    if control.top_k:
        kept = min(kept, control.top_k)
    if control.top_p < 1:
        running = probabilities[:kept].cumsum(0)
        kept = min(kept, int((running < control.top_p * running[-1]).sum()) + 1)
    if control.min_p > 0:
        # In logarithms, as a quotient of two probabilities may underflow.
        floor = probabilities[0].log() + math.log(control.min_p)
        kept = min(kept, max(1, int((probabilities.log() >= floor).sum())))
    return kept
