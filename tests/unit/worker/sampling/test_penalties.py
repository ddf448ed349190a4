"""The penalties in the tiled form, against numbers worked out by hand."""

import pytest
import torch

from zerolayer_dev.testing.sampling_cases import penalties
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.naive import NaiveSampler, penalised
from zerolayer_worker.sampling.penalties import Penalties
from zerolayer_worker.sampling.provider import SamplerProvider, SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
SCORES = [2.0, -2.0, 1.0, 0.0, 3.0]
# Token 0 is the prompt's, 1 and 4 the answer's, once and twice.
TEXT = ([0], [1, 4, 4])


def scores_with(**values: float) -> list[float]:
    """By the tiled form in tiles of two tokens and, which has to be the same, by the oracle."""
    control = SamplingControls(**penalties(*TEXT, **values))
    found = Penalties([SamplingControls(), control], CPU)
    both = torch.tensor([SCORES, SCORES])
    tiles = [found.apply(both[:, start : start + 2], start) for start in (0, 2, 4)]
    plain, changed = torch.cat(tiles, dim=1).tolist()
    assert plain == SCORES
    assert changed == penalised(torch.tensor(SCORES), control).tolist()
    return changed


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, SCORES),
        ({"repetition": 2.0}, [1.0, -4.0, 1.0, 0.0, 1.5]),
        ({"repetition": 0.5}, [4.0, -1.0, 1.0, 0.0, 6.0]),
        ({"presence": 0.5}, [2.0, -2.5, 1.0, 0.0, 2.5]),
        ({"frequency": 0.5}, [2.0, -2.5, 1.0, 0.0, 2.0]),
        ({"frequency": -1.0}, [2.0, -1.0, 1.0, 0.0, 5.0]),
        ({"repetition": 2.0, "presence": 0.5, "frequency": 0.25}, [1.0, -4.75, 1.0, 0.0, 0.5]),
    ],
)
def test_repetition_is_about_all_text_and_the_others_about_the_answer(
    values: dict[str, float], expected: list[float]
) -> None:
    assert scores_with(**values) == expected


def choose(sampler: type[TiledSampler | NaiveSampler], **controls: object) -> object:
    head = LmHead(torch.tensor(SCORES)[:, None], 2)
    provider: SamplerProvider = sampler(head)
    return provider.sample(torch.ones(1, 1), [SamplingControls(**controls)])[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("sampler", [TiledSampler, NaiveSampler])
def test_the_best_token_is_the_best_after_penalties(sampler: type[TiledSampler | NaiveSampler]) -> None:
    assert choose(sampler).token_id == 4  # type: ignore[attr-defined]
    assert choose(sampler, **penalties(*TEXT, presence=1.5)).token_id == 0  # type: ignore[attr-defined]
    assert choose(sampler, **penalties(*TEXT, repetition=4.0)).token_id == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("sampler", [TiledSampler, NaiveSampler])
def test_log_probabilities_are_those_before_penalties(sampler: type[TiledSampler | NaiveSampler]) -> None:
    own = torch.log_softmax(torch.tensor(SCORES), dim=0).tolist()
    choice = choose(sampler, logprobs=2, **penalties(*TEXT, frequency=2.0, repetition=3.0))
    assert choice.token_id == 2  # type: ignore[attr-defined]
    assert choice.logprob == pytest.approx(own[2])  # type: ignore[attr-defined]
    assert [token for token, _ in choice.top] == [4, 0]  # type: ignore[attr-defined]
    rewarded = choose(sampler, logprobs=0, **penalties(*TEXT, presence=-2.0))
    assert rewarded.token_id == 4  # type: ignore[attr-defined]
    assert rewarded.logprob == pytest.approx(own[4])  # type: ignore[attr-defined]


def test_temperature_comes_after_penalties() -> None:
    """At temperature 0.01, halving after the temperature would leave token 4 ahead; before, it is token 0."""
    controls = {"temperature": 0.01, **penalties([4], [], repetition=2.0)}
    drawn = {choose(TiledSampler, seed=seed, **controls).token_id for seed in range(20)}  # type: ignore[attr-defined]
    assert drawn == {0}
