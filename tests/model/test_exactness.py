"""The samplers on the demo's model against the oracle, over a pairwise design of their parameters."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from zerolayer_bench.sampling.heads import StoredHead
from zerolayer_dev.testing.chi_square import holm_rejects, p_value
from zerolayer_dev.testing.pairwise import pairwise
from zerolayer_dev.testing.sampling_cases import native_choosing, penalties
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.naive import NaiveSampler, kept_count, penalised
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.provider import Choice, Head, SamplerProvider, SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
PROMPTS = (
    "On my way home yesterday I saw a",
    "The capital of France is",
    "def fibonacci(n):",
    "She opened the letter, read it twice, and",
)
FACTORS: dict[str, tuple[Any, ...]] = {
    "temperature": (0.7, 1.0, 1.5, 0.3, 0.0),
    "top_k": (0, 40, 1),
    "top_p": (1.0, 0.9, 0.5),
    "min_p": (0.0, 0.05, 0.3),
    "seeds": ("own", "shared", "large"),
    "penalties": ("none", "repetition", "presence and frequency", "all", "rewards"),
}
# The text so far for the penalties: some of its tokens are likely next, all of them are of the prompt's kind.
PENALTIES: dict[str, dict[str, float]] = {
    "none": {},
    "repetition": {"repetition": 1.3},
    "presence and frequency": {"presence": 0.8, "frequency": 0.4},
    "all": {"repetition": 1.2, "presence": 0.5, "frequency": 0.2},
    "rewards": {"repetition": 0.9, "presence": -1.0, "frequency": -0.5},
}
SEEDS: dict[str, Callable[[int], tuple[int, int]]] = {
    "own": lambda draw: (draw, draw % 7),
    "shared": lambda draw: (12345, draw),
    "large": lambda draw: ((1 << 64) - 1 - draw * 0x2545F4914F6CDD1D % (1 << 63), 1 << 20),
}
ROWS = 64
SIMULATED = 40
Serving = Callable[[Head], TiledSampler | NativeSampler]


@pytest.fixture(params=["native", "tiled"])
def serving(request: pytest.FixtureRequest) -> Serving:
    """The samplers that serve on CPUs."""
    if request.param == "tiled":
        return TiledSampler
    return lambda head: NativeSampler(head, native_choosing())


@pytest.fixture(scope="module")
def model(demo_model: Path) -> Transformer:
    config = read_config(demo_model)
    with torch.inference_mode():
        return Transformer(config, load_tensors(demo_model, config, torch.float32, CPU), length=64)


@pytest.fixture(scope="module")
def hidden(model: Transformer, demo_model: Path) -> torch.Tensor:
    """The states after open prompts, `[prompts, hidden_size]`."""
    tokenizer = ModelTokenizer(demo_model)
    with torch.inference_mode():
        return torch.cat(
            [
                model.prefill(
                    tokenizer.encode_text(prompt), 0, [0, 1], KvCache(model.config, 2, torch.float32, CPU)
                )
                for prompt in PROMPTS
            ]
        )


@pytest.fixture(scope="module")
def scores(model: Transformer, hidden: torch.Tensor) -> torch.Tensor:
    """The full fp32 scores, `[prompts, vocab]`."""
    with torch.inference_mode():
        return torch.cat([tile.scores(hidden) for tile in model.head.tiles], dim=1)


def controls(case: dict[str, Any], scores: torch.Tensor, draws: Iterable[int]) -> list[SamplingControls]:
    """One per draw; the text so far holds tokens that are likely, now and then twice."""
    likely = scores.topk(24).indices.tolist()
    sampling: dict[str, Any] = {name: case[name] for name in ("temperature", "top_k", "top_p", "min_p")}
    if PENALTIES[case["penalties"]]:
        sampling |= penalties(likely[::3], [*likely[::4], *likely[::8]], **PENALTIES[case["penalties"]])
    seeds = SEEDS[case["seeds"]]
    return [
        SamplingControls(seed=seed, position=position, **sampling) for seed, position in map(seeds, draws)
    ]


def distribution(scores: torch.Tensor, control: SamplingControls) -> torch.Tensor:
    """What the definition says, in fp64 over all scores `[vocab]`."""
    changed = penalised(scores, control).double()
    result = torch.zeros_like(changed)
    if control.temperature == 0:
        result[changed.argmax()] = 1
        return result
    probabilities = torch.softmax(changed / control.temperature, dim=0)
    order = probabilities.sort(descending=True, stable=True).indices
    kept = order[: kept_count(probabilities[order], control)]
    result[kept] = probabilities[kept] / probabilities[kept].sum()
    return result


def chosen(sampler: SamplerProvider, hidden: torch.Tensor, all_controls: list[SamplingControls]) -> list[int]:
    found: list[Choice] = []
    for start in range(0, len(all_controls), ROWS):
        batch = all_controls[start : start + ROWS]
        found += sampler.sample(hidden.expand(len(batch), -1), batch)
    return [choice.token_id for choice in found]


def variation(drawn: torch.Tensor, probabilities: torch.Tensor) -> tuple[float, float]:
    """Total variation distance, and what as many draws from the distribution itself stay below.

    Five standard deviations above the mean of simulated draws: exceeded once in three million.
    """
    support = probabilities > 0
    exact = probabilities[support].numpy()
    observed = torch.bincount(drawn, minlength=len(probabilities)) / len(drawn)
    distance = 0.5 * float((observed - probabilities).abs().sum())
    chance = np.random.default_rng(7).multinomial(len(drawn), exact / exact.sum(), size=SIMULATED)
    simulated = 0.5 * np.abs(chance / len(drawn) - exact).sum(axis=1)
    return distance, float(simulated.mean() + 5 * simulated.std()) + 1e-9


def check_fit(serving: Serving, scores: torch.Tensor, draws: int, figures: Callable[..., None]) -> None:
    """Draws for every row of the design, each for one of the prompts."""
    design, p_values, excess, outside, again = pairwise(FACTORS), [], [], 0, 0
    for index, case in enumerate(design):
        row = scores[index % len(scores)]
        wanted = controls(case, row, range(draws))
        sampler = serving(StoredHead(row[None]))
        drawn = torch.tensor(chosen(sampler, torch.zeros(1, 1), wanted))
        expected = distribution(row, wanted[0])
        again += sampler.second_passes
        p_values.append(p_value(drawn, expected))
        distance, bound = variation(drawn, expected)
        excess.append(distance / bound)
        outside += int((expected[drawn] == 0).sum())
    figures(
        combinations=len(design),
        draws=draws * len(design),
        smallest_p=round(min(p_values), 5),
        rejected_by_holm=len(holm_rejects(p_values)),
        largest_share_of_variation_bound=round(max(excess), 3),
        outside_of_the_support=outside,
        rows_walked_again=again,
    )
    assert holm_rejects(p_values) == []
    assert max(excess) <= 1
    assert outside == 0


@pytest.mark.promise("exactness")
@pytest.mark.timeout(600)
@torch.inference_mode()
def test_draws_fit_the_oracle(serving: Serving, scores: torch.Tensor, figures: Callable[..., None]) -> None:
    """Draws fit the oracle (chi-square with Holm, total variation, support) for every pair of parameters."""
    check_fit(serving, scores, 640, figures)


@pytest.mark.long
@pytest.mark.promise("exactness")
@pytest.mark.timeout(7200)
@torch.inference_mode()
def test_many_draws_fit_the_oracle(
    serving: Serving, scores: torch.Tensor, figures: Callable[..., None]
) -> None:
    """The same with 12 800 draws for each combination."""
    check_fit(serving, scores, 12_800, figures)


@pytest.mark.promise("exactness")
@pytest.mark.timeout(600)
@torch.inference_mode()
def test_the_same_noise_gives_the_oracles_token(
    serving: Serving,
    model: Transformer,
    hidden: torch.Tensor,
    scores: torch.Tensor,
    figures: Callable[..., None],
) -> None:
    """Given the same noise, the samplers that serve and the fp64 oracle choose the same tokens."""
    served, naive, compared, different = serving(model.head), NaiveSampler(model.head), 0, 0
    for index, case in enumerate(pairwise(FACTORS)):
        prompt = index % len(PROMPTS)
        wanted = controls(case, scores[prompt], range(8))
        ours, theirs = (chosen(s, hidden[prompt : prompt + 1], wanted) for s in (served, naive))
        compared += len(ours)
        different += sum(a != b for a, b in zip(ours, theirs, strict=True))
    figures(compared=compared, different=different)
    assert different == 0


@pytest.mark.promise("exactness")
@torch.inference_mode()
def test_log_probabilities_are_those_of_all_scores(
    serving: Serving,
    model: Transformer,
    hidden: torch.Tensor,
    scores: torch.Tensor,
    figures: Callable[..., None],
) -> None:
    """Log-probabilities equal `log_softmax` of the full fp32 scores within 1e-4, whatever else is asked."""
    expected, furthest, compared = torch.log_softmax(scores, dim=1), 0.0, 0
    for case in pairwise(FACTORS):
        wanted = [controls(case, row, [3])[0] for row in scores]
        wanted = [replace(control, logprobs=20) for control in wanted]
        for row, choice in zip(expected, serving(model.head).sample(hidden, wanted), strict=True):
            assert choice.logprob is not None
            pairs = [(choice.token_id, choice.logprob), *choice.top]
            assert sorted((p for _, p in choice.top), reverse=True) == [p for _, p in choice.top]
            furthest = max(furthest, *(abs(float(row[token]) - found) for token, found in pairs))
            compared += len(pairs)
    figures(compared=compared, largest_difference=furthest)
    assert furthest <= 1e-4
