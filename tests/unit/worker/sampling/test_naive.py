import pytest
import torch

from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.naive import NaiveSampler, kept_count
from zerolayer_worker.sampling.provider import SamplingControls

PROBABILITIES = [0.4, 0.3, 0.2, 0.06, 0.04]


@pytest.mark.parametrize(
    ("controls", "kept"),
    [
        ({}, 5),
        ({"top_k": 2}, 2),
        ({"top_k": 99}, 5),
        ({"top_p": 0.39}, 1),
        ({"top_p": 0.41}, 2),
        ({"top_p": 0.89}, 3),
        ({"top_p": 1e-9}, 1),
        ({"min_p": 0.5}, 3),
        ({"min_p": 0.76}, 1),
        ({"top_k": 3, "top_p": 0.8}, 3),
        ({"top_k": 2, "top_p": 0.6}, 2),
        ({"top_k": 2, "top_p": 0.5}, 1),
        ({"top_k": 4, "top_p": 0.99, "min_p": 0.4}, 3),
    ],
)
def test_filters_in_the_documented_order(controls: dict[str, float], kept: int) -> None:
    """With top-k 2, top-p 0.6 asks for 0.6 of 0.7: the first token's 0.4 is too little."""
    probabilities = torch.tensor(PROBABILITIES, dtype=torch.float64)
    assert kept_count(probabilities, SamplingControls(temperature=1.0, **controls)) == kept


def choose(scores: list[float], **controls: float) -> int:
    head = LmHead(torch.tensor(scores)[:, None])
    return NaiveSampler(head).sample(torch.ones(1, 1), [SamplingControls(**controls)])[0].token_id


def test_greedy_takes_the_lowest_id_of_the_best() -> None:
    assert choose([1.0, 3.0, 3.0, 2.0]) == 1


def test_temperature_counts_before_top_p() -> None:
    """At temperature 5 the second token is needed to reach 0.6, at 1 it is not."""
    scores = [2.0, 0.0, -60.0]
    drawn = [{choose(scores, temperature=t, top_p=0.6, seed=s) for s in range(60)} for t in (1.0, 5.0)]
    assert drawn == [{0}, {0, 1}]


def test_log_probabilities_are_the_models_own() -> None:
    head = LmHead(torch.tensor([[0.0], [1.0], [2.0]]))
    controls = SamplingControls(temperature=0.3, top_k=1, logprobs=2)
    choice = NaiveSampler(head).sample(torch.ones(1, 1), [controls])[0]
    expected = torch.log_softmax(torch.tensor([0.0, 1.0, 2.0]), dim=0)
    assert choice.token_id == 2
    assert choice.logprob == pytest.approx(float(expected[2]))
    assert [token_id for token_id, _ in choice.top] == [2, 1]
    assert [logprob for _, logprob in choice.top] == pytest.approx([float(expected[2]), float(expected[1])])
