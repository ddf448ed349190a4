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
    beyond = size + 1
    complete = size >= vocab_size
    limit = torch.tensor([_top_k(c, vocab_size) for c in controls], device=scaled.device)
    nucleus = torch.tensor([c.top_p for c in controls], dtype=torch.float64, device=scaled.device)
    floor = torch.tensor(
        [math.log(c.min_p) if c.min_p else -math.inf for c in controls],
        dtype=torch.float64,
        device=scaled.device,
    )

    by_top_k = limit.clamp(max=beyond)
    by_min_p = (scaled >= scaled[:, :1] + floor[:, None]).sum(dim=1).clamp(min=1)
    if not complete:
        by_min_p = torch.where(by_min_p == size, beyond, by_min_p)

    mass = (scaled - scaled[:, :1]).exp().cumsum(dim=1)
    of_top_k = mass.gather(1, (limit.clamp(max=size) - 1)[:, None])[:, 0]
    reference = torch.where(limit <= size, of_top_k, (total - scaled[:, 0]).exp())
    by_top_p = (mass < (nucleus * reference)[:, None]).sum(dim=1) + 1
    by_top_p = torch.where(nucleus < 1, by_top_p, beyond)

    kept = torch.minimum(torch.minimum(by_top_k, by_min_p), by_top_p)
    # With a top-k cut beyond the list, the mass that top-p refers to is unknown.
    blind = (nucleus < 1) & (limit > size) & (limit < vocab_size)
    if complete:
        kept = kept.clamp(max=size)
    return Verdict(kept, (kept <= size) & ~blind)


def _top_k(control: SamplingControls, vocab_size: int) -> int:
    return min(control.top_k, vocab_size) if control.top_k else vocab_size
