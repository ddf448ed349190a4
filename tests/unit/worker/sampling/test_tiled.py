import math

import pytest
import torch

from zerolayer_dev.testing.allocations import Allocations
from zerolayer_dev.testing.sampling_cases import against_oracle, disagreements
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.mass import GROUP
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

CASES = 60
CREATIVE = SamplingControls(temperature=1.1, min_p=0.05)
KINDS = {
    "greedy": SamplingControls(),
    "unfiltered": SamplingControls(temperature=1.0, logprobs=2),
    "balanced": SamplingControls(temperature=0.7, top_p=0.9),
    "creative": CREATIVE,
    "walks-again": SamplingControls(temperature=5.0, top_p=0.95),
}


@pytest.mark.parametrize("candidates", [4, 16, 256])
@pytest.mark.parametrize("tile_rows", [64, 256, 8192])
def test_chooses_what_the_oracle_chooses(tile_rows: int, candidates: int) -> None:
    """Same noise, same token: over shapes, equal scores, filters, list lengths and tile sizes."""
    wrong, again = against_oracle(lambda head: TiledSampler(head, candidates), tile_rows, CASES)
    assert wrong == 0
    assert again > 10 if candidates < 64 else True


@pytest.mark.parametrize("kind", KINDS)
def test_neither_tile_nor_batch_changes_a_choice(kind: str) -> None:
    torch.manual_seed(3)
    weight, hidden = torch.randn(2000, 16), torch.randn(6, 16)
    controls = [KINDS[kind]] * 6
    whole = TiledSampler(LmHead(weight, 2048)).sample(hidden, controls)
    for tile_rows in (256, 512, 1024):
        assert TiledSampler(LmHead(weight, tile_rows)).sample(hidden, controls) == whole
    alone = TiledSampler(LmHead(weight, 512))
    assert [alone.sample(hidden[i : i + 1], controls[:1])[0] for i in range(6)] == whole


@pytest.mark.parametrize("kind", KINDS)
def test_no_tensor_of_batch_and_vocabulary_exists(kind: str) -> None:
    weight, hidden = torch.randn(32_768, 8) * 0.3, torch.randn(3, 8)
    sampler = TiledSampler(LmHead(weight, 2048))
    with Allocations() as watched:
        sampler.sample(hidden, [KINDS[kind]] * 3)
    assert watched.largest <= 3 * GROUP  # the log-sum-exp's group; the exact cut's histogram is narrower
    with Allocations() as naive:
        NaiveSampler(LmHead(weight, 2048)).sample(hidden, [KINDS[kind]] * 3)
    assert naive.largest >= 3 * 32_768


def test_rows_beyond_the_controls_only_fill_up() -> None:
    head, hidden = LmHead(torch.randn(50, 8), 16), torch.randn(4, 8)
    controls = [CREATIVE, SamplingControls()]
    assert TiledSampler(head).sample(hidden, controls) == TiledSampler(head).sample(hidden[:2], controls)


def test_counts_the_rows_that_need_another_walk() -> None:
    head = LmHead(torch.zeros(1000, 8), 256)
    sampler = TiledSampler(head)
    flat = SamplingControls(temperature=1.0, top_p=0.9)
    sampler.sample(torch.zeros(3, 8), [flat, SamplingControls(), flat])
    sampler.sample(torch.zeros(1, 8), [SamplingControls(temperature=1.0, top_p=0.1)])
    assert sampler.second_passes == 2


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_no_numbers_are_an_error(kind: str) -> None:
    weight = torch.randn(50, 8)
    weight[20] = math.nan
    with pytest.raises(FloatingPointError, match="not numbers"):
        TiledSampler(LmHead(weight, 16)).sample(torch.randn(2, 8), [KINDS[kind]] * 2)


def test_takes_both_zeros_for_equal() -> None:
    head = LmHead(torch.tensor([[-1.0], [0.0], [-0.0]]), 2)
    controls = [SamplingControls(), SamplingControls(logprobs=3), SamplingControls(temperature=0.5, top_k=1)]
    for hidden in (1.0, -1.0):
        rows = torch.full((3, 1), hidden)
        expected = NaiveSampler(head).sample(rows, controls)
        assert disagreements(TiledSampler(head).sample(rows, controls), expected) == 0
