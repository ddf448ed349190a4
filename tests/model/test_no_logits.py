"""What a sampling step adds to memory, at the size of the demo's vocabulary and beyond."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from zerolayer_dev.testing.allocations import Allocations
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.head import TILE_ROWS, LmHead
from zerolayer_worker.models.native.choosing import NativeChoosing
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.provider import SamplerProvider, SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

BATCHES = (1, 8, 32)
KINDS = {
    "greedy": SamplingControls(),
    "balanced": SamplingControls(temperature=0.7, top_p=0.9),
    "creative": SamplingControls(temperature=1.1, min_p=0.05),
    "unfiltered": SamplingControls(temperature=1.0, logprobs=5),
    "walks-again": SamplingControls(temperature=1e4, top_p=0.95),
}
# Tensors of batch * tile that one step may hold at once: 4-byte scores, 8-byte keys and weights.
TILES_AT_ONCE = 20
FLOAT = 4
# What each of two threads looks at a tile with.
THREADS_BYTES = 2 * 2 * TILE_ROWS * FLOAT


@pytest.fixture(scope="module")
def weight(demo_model: Path) -> torch.Tensor:
    """The demo's head, `[vocab, hidden_size]`."""
    config = read_config(demo_model)
    tensors = load_tensors(demo_model, config, torch.float32, torch.device("cpu"))
    return tensors["model.embed_tokens.weight"]


@torch.inference_mode()
def watch(
    sampler: SamplerProvider, batch: int, weight: torch.Tensor, controls: SamplingControls
) -> Allocations:
    """Every row has one token that is by far the best, whatever the vocabulary's size."""
    best = weight[1000 : 1000 + batch]
    hidden = 30 * best / best.square().sum(dim=1, keepdim=True)
    sampler.sample(hidden, [controls] * batch)
    with Allocations() as watched:
        sampler.sample(hidden, [controls] * batch)
    return watched


@pytest.mark.promise("no-logits")
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_needs_memory_for_batch_and_tile(
    weight: torch.Tensor, kind: str, figures: Callable[..., None]
) -> None:
    """A sampling step's peak extra memory is O(batch * tile): it does not grow with the vocabulary."""
    head, doubled = LmHead(weight), LmHead(weight.repeat(2, 1))
    for batch in BATCHES:
        tile_bytes = batch * TILE_ROWS * FLOAT
        once = watch(TiledSampler(head), batch, weight, KINDS[kind])
        twice = watch(TiledSampler(doubled), batch, weight, KINDS[kind])
        figures(
            kind=kind,
            batch=batch,
            peak_mib=round(once.peak / 2**20, 2),
            peak_mib_at_twice_the_vocabulary=round(twice.peak / 2**20, 2),
            logits_mib=round(batch * head.vocab_size * FLOAT / 2**20, 2),
            largest_tensor_in_tiles=once.largest / (batch * TILE_ROWS),
        )
        assert once.largest <= batch * TILE_ROWS
        assert once.peak <= TILES_AT_ONCE * tile_bytes
        # The log-sum-exp keeps two numbers per 256 tokens.
        assert twice.peak <= 1.1 * once.peak


@pytest.mark.promise("no-logits")
@pytest.mark.parametrize("kind", KINDS)
def test_a_native_step_needs_less(weight: torch.Tensor, kind: str, figures: Callable[..., None]) -> None:
    """On CPUs the native step's memory beside a tile's scores does not grow with the vocabulary either."""
    heads = LmHead(weight), LmHead(weight.repeat(2, 1))
    for batch in BATCHES:
        peaks: list[int] = []
        for head in heads:
            choosing = NativeChoosing(Kernels(2))
            watched = watch(NativeSampler(head, choosing), batch, weight, KINDS[kind])
            peaks.append(watched.peak + choosing.kept_bytes)
            assert watched.largest <= batch * TILE_ROWS
        figures(
            kind=kind,
            batch=batch,
            native_peak_mib=round(peaks[0] / 2**20, 2),
            native_peak_mib_at_twice_the_vocabulary=round(peaks[1] / 2**20, 2),
        )
        assert peaks[1] <= 1.1 * peaks[0]
        if kind != "walks-again":
            assert peaks[0] <= 2 * batch * TILE_ROWS * FLOAT + THREADS_BYTES


def test_the_measurement_sees_the_oracles_logits(weight: torch.Tensor) -> None:
    watched = watch(NaiveSampler(LmHead(weight)), 8, weight, SamplingControls())
    assert watched.largest >= 8 * weight.shape[0]
