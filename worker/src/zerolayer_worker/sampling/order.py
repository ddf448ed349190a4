"""One total order over (score, token id): higher scores first, equal scores by the lower id."""

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF


def ordered_bits(scores: Tensor) -> Tensor:
    """fp32 scores as int32 numbers in the same order; both zeros are one number."""
    bits = (scores + 0.0).view(torch.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def rank_keys(scores: Tensor, token_ids: Tensor) -> Tensor:
    """One int64 per token; no two tokens of a row share one, so even `topk` has a single answer."""
    return (ordered_bits(scores).long() << 32) - token_ids


def key_scores(keys: Tensor) -> Tensor:
    """The fp32 scores within `rank_keys`."""
    bits = ((keys + _LOW) >> 32).int()
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(torch.float32)


def key_token_ids(keys: Tensor) -> Tensor:
    """The token ids within `rank_keys`."""
    return -keys & _LOW
