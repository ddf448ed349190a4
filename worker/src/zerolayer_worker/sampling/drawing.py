"""The draw among the tokens that the filters keep."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from zerolayer_worker.sampling.noise import gumbel, row_keys
from zerolayer_worker.sampling.provider import SamplingControls


def draw(scaled: Tensor, token_ids: Tensor, kept: Tensor, controls: Sequence[SamplingControls]) -> Tensor:
    """The place of the choice, int64 `[rows, 1]`, by the Gumbel-max trick.

    Args:
        scaled: fp64 `[rows, n]`, scores over temperature, best first.
        token_ids: int64 `[rows, n]`.
        kept: int64 `[rows]`, how many of them may be drawn; what lies beyond `n` can't be.
        controls: one per row.
    """
    longest = min(int(kept.max()), scaled.shape[1])
    if longest == 1:
        return torch.zeros_like(kept)[:, None]
    scaled, token_ids = scaled[:, :longest], token_ids[:, :longest]
    outside = torch.arange(longest, device=scaled.device) >= kept[:, None]
    noise = gumbel(row_keys(controls, scaled.device), token_ids)
    noisy = (scaled + noise).masked_fill_(outside, -math.inf)
    # Of equal values the one of the lowest token id.
    losers = noisy != noisy.amax(dim=1, keepdim=True)
    return token_ids.masked_fill(losers, 1 << 62).argmin(dim=1, keepdim=True)
