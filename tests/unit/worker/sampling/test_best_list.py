import math

import pytest
import torch

from zerolayer_worker.sampling.best_list import BestList

CPU = torch.device("cpu")


def best(scores: torch.Tensor, size: int, tile: int) -> tuple[torch.Tensor, torch.Tensor]:
    found = BestList(scores.shape[0], size, CPU)
    for start in range(0, scores.shape[1], tile):
        found.add(scores[:, start : start + tile], start)
    return found.result()


def shapes() -> list[torch.Tensor]:
    """Scores without order, rising, falling, equal, and of a few values only."""
    generator = torch.Generator().manual_seed(2)
    random = torch.randn(4, 3000, generator=generator)
    rising = torch.arange(3000.0).expand(4, -1)
    mixed = torch.stack((rising[0], -rising[0], torch.zeros(3000), random[0].round()))
    return [random, rising, -rising, torch.zeros(4, 3000), random.round(), mixed]


@pytest.mark.parametrize("scores", shapes())
@pytest.mark.parametrize("size", [1, 20, 256, 5000])
@pytest.mark.parametrize("tile", [100, 1024, 3000])
@pytest.mark.parametrize("rows", [1, 4])
def test_is_the_head_of_a_stable_sort(scores: torch.Tensor, size: int, tile: int, rows: int) -> None:
    scores = scores[:rows].contiguous()
    expected = scores.sort(dim=1, descending=True, stable=True)
    values, ids = best(scores, size, tile)
    assert torch.equal(ids, expected.indices[:, :size])
    assert torch.equal(values, expected.values[:, :size])


@pytest.mark.parametrize("place", [0, 1500, 2999])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_no_number_comes_first(place: int, value: float, sign: float) -> None:
    """Wherever it stands, and whichever its sign bit, by which it would rank last."""
    scores = torch.randn(2, 3000)
    scores[1, place] = math.copysign(value, sign) if math.isnan(value) else value
    values, _ = best(scores, 16, 500)
    assert math.isfinite(float(values[0, 0]))
    assert float(values[1, 0]) == math.inf


def test_both_zeros_are_equal() -> None:
    scores = torch.tensor([[-0.0, 0.0, -0.0, -1.0]])
    assert best(scores, 3, 1)[1].tolist() == [[0, 1, 2]]
