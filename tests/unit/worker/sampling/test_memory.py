"""Memory of a sampling step over vocabularies and batches, fused against kept logits."""

from collections.abc import Callable
from itertools import product

import pytest
import torch

from zerolayer_bench.sampling.baselines import plain_top_k, sorted_top_p
from zerolayer_dev.testing.allocations import peak_bytes
from zerolayer_worker.models.head import TILE_ROWS, LmHead
from zerolayer_worker.models.native.choosing import NativeChoosing
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

VOCABULARIES = (49_152, 128_256, 262_144)
BATCHES = (1, 8, 64)
HIDDEN = 64
KINDS = {
    "greedy": SamplingControls(),
    "T 0.7, top-p 0.9": SamplingControls(temperature=0.7, top_p=0.9),
    "T 1.1, min-p 0.05": SamplingControls(temperature=1.1, min_p=0.05),
    "T 1.0, 5 log-probabilities": SamplingControls(temperature=1.0, logprobs=5),
}
# What varies from one random head to the next: how many tokens of a tile have to be ranked, in shares of
# the peak and, at batch 1, where the peak is about as large as Python's own objects, in bytes.
CHANCE = 1.1
SLACK = 2**17
MIB = 2**20


@pytest.fixture(scope="module", params=VOCABULARIES)
def head(request: pytest.FixtureRequest) -> tuple[LmHead, torch.Tensor]:
    """Every vocabulary's head, and hidden states `[64, HIDDEN]` that each have one best token by far."""
    weight = torch.randn(request.param, HIDDEN, generator=torch.Generator().manual_seed(request.param))
    best = weight[: max(BATCHES)]
    return LmHead(weight), 20 * best / best.square().sum(dim=1, keepdim=True)


def logits_of(head: LmHead, hidden: torch.Tensor) -> torch.Tensor:
    return torch.cat([tile.scores(hidden) for tile in head.tiles], dim=1)


@pytest.fixture(scope="module")
def fused_peaks() -> dict[tuple[int, str, str], list[int]]:
    """By batch, sampler and kind, of the vocabularies so far."""
    return {}


@pytest.mark.promise("memory")
@pytest.mark.parametrize("batch", BATCHES)
def test_the_fused_step_does_not_grow_with_the_vocabulary(
    head: tuple[LmHead, torch.Tensor],
    batch: int,
    fused_peaks: dict[tuple[int, str, str], list[int]],
    figures: Callable[..., None],
) -> None:
    """The fused step's peak memory is the same for 49 152 to 262 144 tokens; that of kept logits grows."""
    lm_head, states = head
    hidden, tile = states[:batch], batch * TILE_ROWS * 4
    choosing, row = NativeChoosing(Kernels(1)), {}
    samplers = {"fused": TiledSampler(lm_head), "native": NativeSampler(lm_head, choosing)}
    for (name, sampler), (kind, control) in product(samplers.items(), KINDS.items()):
        peak = peak_bytes(lambda s=sampler, c=control: s.sample(hidden, [c] * batch))
        peak += choosing.kept_bytes if name == "native" else 0
        row[f"{name}_{kind}_mib"] = round(peak / MIB, 2)
        peaks = fused_peaks.setdefault((batch, name, kind), [])
        peaks.append(peak)
        assert max(peaks) <= CHANCE * min(peaks) + SLACK
        assert peak <= 20 * tile
    for name, choose in (("sorted_top_p", sorted_top_p), ("top_k", plain_top_k)):
        kept = peak_bytes(lambda f=choose: f(logits_of(lm_head, hidden)))
        row[f"logits_{name}_mib"] = round(kept / MIB, 2)
        assert kept >= batch * lm_head.vocab_size * 4
    figures(vocab=lm_head.vocab_size, batch=batch, **row)
