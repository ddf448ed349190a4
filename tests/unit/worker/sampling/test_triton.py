"""The Triton kernels: interpreted on CPUs, compiled where there is a GPU (`make test-gpu`)."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from zerolayer_dev.testing.sampling_cases import SamplingCase, disagreements, sampling_case
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.noise import gumbel, key_tensor, stream_key
from zerolayer_worker.sampling.order import key_token_ids
from zerolayer_worker.sampling.provider import SamplingControls

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CASES = 20


@pytest.fixture(scope="module")
def sampler() -> Any:
    """The class; `tests/conftest.py` has its kernels interpreted where there is no GPU."""
    return importlib.import_module("zerolayer_worker.sampling.triton_sampler").TritonSampler


def on_device(case: SamplingCase) -> SamplingCase:
    return replace(case, weight=case.weight.to(DEVICE), hidden=case.hidden.to(DEVICE))


@pytest.mark.promise("triton")
def test_chooses_what_the_oracle_chooses(sampler: Any, figures: Callable[..., None]) -> None:
    """The kernels choose the oracle's tokens: same noise, any filters and penalties, ties by the lower id."""
    wrong = compared = again = 0
    for seed in range(CASES):
        case = on_device(sampling_case(seed))
        found = sampler(case.weight, case.head(64))
        expected = NaiveSampler(case.head(8192)).sample(case.hidden, case.controls)
        wrong += disagreements(found.sample(case.hidden, case.controls), expected)
        compared += len(expected)
        again += found.second_passes
    figures(device=DEVICE.type, compared=compared, different=wrong, decided_by_the_tiled_sampler=again)
    assert wrong == 0


@pytest.mark.promise("triton")
def test_a_row_does_not_depend_on_the_batch(sampler: Any, figures: Callable[..., None]) -> None:
    """A row is chosen alike alone, in any batch and at any place of it; compiled, with the same bits."""
    kernel = importlib.import_module("zerolayer_worker.sampling.triton_kernel")
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(300, 96, generator=generator).to(DEVICE)
    hidden = torch.randn(19, 96, generator=generator).to(DEVICE)
    keys = torch.arange(19, device=DEVICE)
    warmth = torch.full((19,), 0.8, device=DEVICE)
    # Interpreted, a block's product is numpy's, whose bits depend on a row's place in the block.
    tolerance = 1e-5 if DEVICE.type == "cpu" else 0.0
    whole = kernel.best(hidden, weight, keys, warmth)
    for rows in ([0], [18], [3, 4, 5], list(reversed(range(19)))):
        part = kernel.best(hidden[rows], weight, keys[rows], warmth[rows])
        assert torch.equal(part[0], whole[0][rows])
        for a, b in zip(part[1:], whole[1:], strict=True):
            torch.testing.assert_close(a, b[rows], rtol=tolerance, atol=tolerance)
    lists = kernel.lists(hidden, weight, warmth)
    alone = kernel.lists(hidden[7:8], weight, warmth[7:8])
    assert torch.equal(key_token_ids(lists.keys[7:8]), key_token_ids(alone.keys))
    torch.testing.assert_close(lists.sums[7:8], alone.sums, rtol=tolerance, atol=tolerance)
    figures(device=DEVICE.type, rows=19)


def test_the_noise_is_that_of_the_other_samplers(sampler: Any) -> None:
    """With no scores at all, the values are the noise: its maximum over each tile of tokens."""
    kernel = importlib.import_module("zerolayer_worker.sampling.triton_kernel")
    keys = key_tensor((stream_key(seed, 5) for seed in range(6)), DEVICE)
    nothing = torch.zeros(300, 16, device=DEVICE)
    hidden = torch.zeros(6, 16, device=DEVICE)
    tokens, scores, values = kernel.best(hidden, nothing, keys[:, 0], torch.ones(6, device=DEVICE))
    expected = gumbel(keys, torch.arange(300, device=DEVICE)).max(dim=1)
    assert torch.equal(tokens, expected.indices)
    torch.testing.assert_close(values, expected.values, rtol=1e-5, atol=1e-5)
    assert not bool(scores.any())


@pytest.mark.parametrize(
    "controls",
    [SamplingControls(), SamplingControls(temperature=1.0), SamplingControls(temperature=0.7, top_p=0.9)],
    ids=["greedy", "unfiltered", "filtered"],
)
def test_scores_that_are_no_numbers_are_an_error(sampler: Any, controls: SamplingControls) -> None:
    case = on_device(sampling_case(0))
    weight = torch.randn(300, 16, device=DEVICE)
    weight[200, 3] = float("nan")
    broken = replace(case, weight=weight, hidden=torch.randn(2, 16, device=DEVICE))
    with pytest.raises(FloatingPointError, match="not numbers"):
        sampler(weight, broken.head(64)).sample(broken.hidden, [controls] * 2)


def test_rows_beyond_the_controls_are_left_alone(sampler: Any) -> None:
    case = on_device(sampling_case(0))
    weight, hidden = torch.randn(300, 16, device=DEVICE), torch.randn(4, 16, device=DEVICE)
    head = replace(case, weight=weight).head(64)
    controls = [SamplingControls(temperature=0.9, top_k=5, seed=3), SamplingControls(logprobs=2)]
    expected = NaiveSampler(head).sample(hidden, controls)
    assert disagreements(sampler(weight, head).sample(hidden, controls), expected) == 0
