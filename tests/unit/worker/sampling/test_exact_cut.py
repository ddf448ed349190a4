from collections.abc import Iterator

import pytest
import torch

from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.exact_cut import ExactDraw
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.noise import key_tensor, stream_key
from zerolayer_worker.sampling.provider import SamplingControls


def draw(scores: torch.Tensor, controls: list[SamplingControls], tile: int) -> list[int]:
    """Token ids for `scores` `[rows, vocab]`, walked in tiles."""

    def walk() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start in range(0, scores.shape[1], tile):
            part = scores[:, start : start + tile]
            yield torch.arange(start, start + part.shape[1]), part

    keys = key_tensor((stream_key(c.seed, c.position) for c in controls), torch.device("cpu"))
    temperature = torch.tensor([[c.temperature] for c in controls], dtype=torch.float64)
    log_total = torch.logsumexp(scores.double() / temperature, dim=1)
    tokens, found = ExactDraw(walk, controls, keys, scores.amax(dim=1).double(), log_total).draw()
    assert torch.equal(found.float(), scores.gather(1, tokens[:, None])[:, 0])
    return tokens.tolist()


@pytest.mark.parametrize(
    "filters",
    [
        {"top_k": 40},
        {"top_k": 1},
        {"top_p": 0.5},
        {"top_p": 0.999},
        {"min_p": 0.3},
        {"top_k": 300, "top_p": 0.7},
        {"top_k": 30, "top_p": 0.99},
        {"top_k": 300, "top_p": 0.95, "min_p": 0.2},
        {"top_k": 5000},
    ],
)
@pytest.mark.parametrize("whole_numbers", [False, True], ids=["distinct", "equal-scores"])
def test_draws_what_the_oracle_draws(filters: dict[str, float], whole_numbers: bool) -> None:
    generator = torch.Generator().manual_seed(11)
    scores = torch.randn(40, 700, generator=generator) * 2
    if whole_numbers:
        scores = scores.round()
    controls = [SamplingControls(temperature=1.3, seed=row, position=9, **filters) for row in range(40)]
    oracle = NaiveSampler(LmHead(torch.zeros(1, 1)))
    expected = [oracle.choose(row.double(), c).token_id for row, c in zip(scores, controls, strict=True)]
    assert draw(scores, controls, 128) == expected
    assert draw(scores, controls, 700) == expected
