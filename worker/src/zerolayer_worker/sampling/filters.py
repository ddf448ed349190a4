"""How many of the best tokens the filters keep, judged from the best few alone where that is certain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.sampling.provider import SamplingControls


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kept` `[rows]`: length of the kept prefix of the ranking; meaningless where not `certain` `[rows]`."""

    kept: Tensor
    certain: Tensor


def judge(scaled: Tensor, total: Tensor, controls: Sequence[SamplingControls], vocab_size: int) -> Verdict:
    """Applies top-k, top-p and min-p to the best `n` tokens of each row.

    A filter whose cut lies within the `n` tokens is decided exactly; one whose cut provably lies beyond
    them can be ignored if another cuts earlier. Only then is the verdict certain.

    Args:
        scaled: fp64 `[rows, n]`, scores over temperature, best first.
        total: fp64 `[rows]`, log-sum-exp of all scaled scores; read only for rows with top-p.
        controls: one per row.
        vocab_size: number of tokens there are.
    """
    size = scaled.shape[1]
    complete = size >= vocab_size
    top_k = [min(c.top_k, vocab_size) if c.top_k else vocab_size for c in controls]
    limit = torch.tensor(top_k, device=scaled.device)
    kept = limit.clamp(max=size + 1)
    if any(c.min_p for c in controls):
        kept = torch.minimum(kept, _by_min_p(scaled, controls, complete=complete))
    if any(c.top_p < 1 for c in controls):
        kept = torch.minimum(kept, _by_top_p(scaled, total, controls, limit))
    if complete:
        kept = kept.clamp(max=size)
    certain = kept <= size
    # With a top-k cut beyond the list, the mass that top-p refers to is unknown.
    blind = [c.top_p < 1 and size < k < vocab_size for c, k in zip(controls, top_k, strict=True)]
    if any(blind):
        certain &= ~torch.tensor(blind, device=scaled.device)
    return Verdict(kept, certain)


def _by_min_p(scaled: Tensor, controls: Sequence[SamplingControls], *, complete: bool) -> Tensor:
    size = scaled.shape[1]
    logarithms = [math.log(c.min_p) if c.min_p else -math.inf for c in controls]
    floor = torch.tensor(logarithms, dtype=torch.float64, device=scaled.device)[:, None]
    kept = (scaled >= scaled[:, :1] + floor).sum(dim=1).clamp(min=1)
    return kept if complete else torch.where(kept == size, size + 1, kept)


def _by_top_p(scaled: Tensor, total: Tensor, controls: Sequence[SamplingControls], limit: Tensor) -> Tensor:
    size = scaled.shape[1]
    nucleus = torch.tensor([c.top_p for c in controls], dtype=torch.float64, device=scaled.device)
    mass = (scaled - scaled[:, :1]).exp_().cumsum(dim=1)
    of_top_k = mass.gather(1, (limit.clamp(max=size) - 1)[:, None])[:, 0]
    reference = torch.where(limit <= size, of_top_k, (total - scaled[:, 0]).exp())
    kept = (mass < (nucleus * reference)[:, None]).sum(dim=1) + 1
    return torch.where(nucleus < 1, kept, size + 1)
