import pytest
import torch

from zerolayer_worker.sampling.mass import BLOCK, LogSumExp


def summed(scores: torch.Tensor, tile: int) -> torch.Tensor:
    total = LogSumExp()
    for part in scores.split(tile, dim=1):
        total.add(part)
    return total.result()


@pytest.mark.parametrize("size", [1, 255, 256, 1000, 5000])
@pytest.mark.parametrize("scale", [0.1, 10.0, 300.0])
def test_is_the_logarithm_of_the_sum_of_exponentials(size: int, scale: float) -> None:
    scores = torch.randn(3, size) * scale
    torch.testing.assert_close(
        summed(scores, 4 * BLOCK), torch.logsumexp(scores.double(), dim=1), rtol=1e-6, atol=1e-6
    )


def test_neither_tiles_nor_neighbours_change_a_bit() -> None:
    scores = torch.randn(5, 5000)
    whole = summed(scores, 8192)
    assert all(torch.equal(summed(scores, tile), whole) for tile in (BLOCK, 2 * BLOCK, 8 * BLOCK))
    assert torch.equal(summed(scores[2:3], 2 * BLOCK)[0], whole[2])
