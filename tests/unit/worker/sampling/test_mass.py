import pytest
import torch

from zerolayer_dev.testing.allocations import Allocations
from zerolayer_worker.sampling.mass import GROUP, LogSumExp


def summed(scores: torch.Tensor, tile: int, temperature: torch.Tensor | None = None) -> torch.Tensor:
    total = LogSumExp(temperature)
    for part in scores.split(tile, dim=1):
        total.add(part)
    return total.result()


@pytest.mark.parametrize("size", [1, 255, GROUP, GROUP + 1, 5 * GROUP - 100])
@pytest.mark.parametrize("scale", [0.1, 10.0, 300.0])
@pytest.mark.parametrize("temperature", [None, 0.7])
def test_is_the_logarithm_of_the_sum_of_exponentials(
    size: int, scale: float, temperature: float | None
) -> None:
    scores = torch.randn(3, size) * scale
    column = None if temperature is None else torch.full((3, 1), temperature)
    torch.testing.assert_close(
        summed(scores, 1000, column),
        torch.logsumexp(scores.double() / (temperature or 1.0), dim=1),
        rtol=1e-6,
        atol=1e-6,
    )


def test_neither_tiles_nor_neighbours_change_a_bit() -> None:
    scores = torch.randn(5, 30_000) * 3
    whole = summed(scores, 30_000)
    assert all(torch.equal(summed(scores, tile), whole) for tile in (256, 1000, GROUP, 2 * GROUP + 5))
    assert all(torch.equal(summed(scores[i : i + 1], GROUP)[0], whole[i]) for i in range(5))


def test_memory_does_not_grow_with_the_number_of_tokens() -> None:
    def peak(groups: int) -> int:
        total, tile = LogSumExp(), torch.zeros(2, GROUP)
        with Allocations() as watched:
            for _ in range(groups):
                total.add(tile)
            total.result()
        return watched.peak

    assert peak(40) == peak(4)
