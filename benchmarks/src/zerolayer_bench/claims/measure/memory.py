"""The most memory that a sampling step holds at once, fused and from kept logits."""

from typing import Any

import torch

from zerolayer_bench.sampling.baselines import plain_top_k, sorted_top_p
from zerolayer_dev.testing.allocations import Allocations, peak_bytes
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

BATCHES = (1, 8, 64)
_HIDDEN = 64
_FUSED = SamplingControls(temperature=0.7, top_p=0.9)


def measure(piece: str) -> dict[str, Any]:
    """Peaks in bytes at one vocabulary, by batch; `largest` is of the elements of one tensor."""
    vocab = int(piece)
    weight = torch.randn(vocab, _HIDDEN, generator=torch.Generator().manual_seed(vocab))
    head = LmHead(weight)
    return {"cells": [_cell(head, weight, batch) for batch in BATCHES]}


def _cell(head: LmHead, weight: torch.Tensor, batch: int) -> dict[str, Any]:
    best = weight[:batch]
    hidden = 20 * best / best.square().sum(dim=1, keepdim=True)
    sampler = TiledSampler(head)

    def fused() -> None:
        sampler.sample(hidden, [_FUSED] * batch)

    def logits() -> torch.Tensor:
        return torch.cat([tile.scores(hidden) for tile in head.tiles], dim=1)

    with Allocations() as watched, torch.inference_mode():
        fused()
    return {
        "vocab": head.vocab_size,
        "batch": batch,
        "fused": peak_bytes(fused),
        "top_p": peak_bytes(lambda: sorted_top_p(logits())),
        "top_k": peak_bytes(lambda: plain_top_k(logits())),
        "largest": watched.largest,
    }
