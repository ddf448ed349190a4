"""Choosing from kept logits, as most engines do; what the fused step is measured against."""

import torch
from torch import Tensor


def greedy(logits: Tensor) -> Tensor:
    """The best token of each row of `logits` `[rows, vocab]`."""
    return logits.argmax(dim=1)


def sorted_top_p(logits: Tensor, temperature: float = 0.7, top_p: float = 0.9) -> Tensor:
    """Nucleus sampling by a full sort, in fp32."""
    probabilities = torch.softmax(logits.float() / temperature, dim=1)
    ranked, order = probabilities.sort(dim=1, descending=True)
    before = ranked.cumsum(dim=1) - ranked
    kept = ranked.masked_fill(before >= top_p, 0.0)
    return order.gather(1, torch.multinomial(kept, 1))[:, 0]


def plain_top_k(logits: Tensor, temperature: float = 0.7, top_k: int = 50) -> Tensor:
    """A draw among the best 50: the cheapest of the common filters."""
    values, token_ids = logits.topk(top_k, dim=1)
    probabilities = torch.softmax(values.float() / temperature, dim=1)
    return token_ids.gather(1, torch.multinomial(probabilities, 1))[:, 0]
