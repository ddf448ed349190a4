"""The tiled sampler's draws on the demo's model, against the naive oracle."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from zerolayer_dev.testing.chi_square import holm_rejects, p_value
from zerolayer_dev.testing.sampling_cases import draws
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.naive import NaiveSampler, kept_count
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
TEMPERATURES = (0.3, 0.7, 1.0, 1.5)
FILTERS: tuple[dict[str, float], ...] = ({}, {"top_k": 40}, {"top_p": 0.9}, {"min_p": 0.05})
DRAWS = (2000, 400, 400, 400)
SAME_NOISE = 50


@pytest.fixture(scope="module")
def model(demo_model: Path) -> Transformer:
    config = read_config(demo_model)
    with torch.inference_mode():
        return Transformer(config, load_tensors(demo_model, config, torch.float32, CPU), length=64)


@pytest.fixture(scope="module")
def hidden(model: Transformer, demo_model: Path) -> torch.Tensor:
    """The state after an open prompt, `[1, hidden_size]`."""
    ids = ModelTokenizer(demo_model).encode_text("On my way home yesterday I saw a")
    with torch.inference_mode():
        return model.prefill(ids, 0, [0, 1], KvCache(model.config, 2, torch.float32, CPU))


def distribution(
    model: Transformer, hidden: torch.Tensor, temperature: float, **filters: float
) -> torch.Tensor:
    """Filtered softmax over the full scores in fp64, `[vocab]`."""
    scores = torch.cat([tile.scores(hidden) for tile in model.head.tiles], dim=1)[0].double()
    probabilities = torch.softmax(scores / temperature, dim=0)
    order = probabilities.sort(descending=True, stable=True).indices
    controls = SamplingControls(temperature=temperature, **filters)
    kept = order[: kept_count(probabilities[order], controls)]
    result = torch.zeros_like(probabilities)
    result[kept] = probabilities[kept] / probabilities[kept].sum()
    return result


@pytest.mark.promise("exact-sampling")
@pytest.mark.timeout(1200)
@torch.inference_mode()
def test_draws_fit_the_oracles_distribution(
    model: Transformer, hidden: torch.Tensor, figures: Callable[..., None]
) -> None:
    """Draws fit the naive oracle's distribution (chi-square, Holm) at temperatures 0.3, 0.7, 1.0 and 1.5."""
    began, sampler, p_values = time.monotonic(), TiledSampler(model.head), []
    for temperature in TEMPERATURES:
        of_temperature = [
            p_value(
                draws(sampler, hidden, count, temperature=temperature, **filters),
                distribution(model, hidden, temperature, **filters),
            )
            for filters, count in zip(FILTERS, DRAWS, strict=True)
        ]
        p_values += of_temperature
        figures(temperature=temperature, draws=sum(DRAWS), smallest_p=round(min(of_temperature), 4))
    figures(
        rows_walked_again=sampler.second_passes,
        rejected=len(holm_rejects(p_values)),
        seconds=round(time.monotonic() - began, 1),
    )
    assert holm_rejects(p_values) == []


@pytest.mark.promise("exact-sampling")
@pytest.mark.timeout(600)
@torch.inference_mode()
def test_the_same_noise_gives_the_oracles_token(
    model: Transformer, hidden: torch.Tensor, figures: Callable[..., None]
) -> None:
    """Given the same noise, the tiled sampler and the fp64 oracle choose the same tokens."""
    tiled, naive, different = TiledSampler(model.head), NaiveSampler(model.head), 0
    for temperature in TEMPERATURES:
        for filters in FILTERS:
            ours, theirs = (
                draws(sampler, hidden, SAME_NOISE, temperature=temperature, **filters)
                for sampler in (tiled, naive)
            )
            different += int((ours != theirs).sum())
    figures(compared=SAME_NOISE * len(TEMPERATURES) * len(FILTERS), different=different)
    assert different == 0
