import math

import pytest
import torch

from zerolayer_worker.sampling.running_best import RunningBest


@pytest.mark.parametrize("tile", [1, 100, 128, 256, 1000])
@pytest.mark.parametrize("whole_numbers", [False, True])
def test_is_the_first_of_the_best(tile: int, whole_numbers: bool) -> None:
    values = torch.randn(5, 1000, generator=torch.Generator().manual_seed(4))
    values = values.round() if whole_numbers else values
    scores = torch.randn(5, 1000)
    found = RunningBest(5, values.device)
    for start in range(0, 1000, tile):
        found.add(values[:, start : start + tile], scores[:, start : start + tile], start)
    expected = [row.tolist().index(max(row.tolist())) for row in values]
    assert found.token.tolist() == expected
    assert torch.equal(found.value, values.amax(dim=1))
    assert torch.equal(found.score, scores[torch.arange(5), found.token])


@pytest.mark.parametrize("place", [0, 200, 383])
def test_a_value_that_is_no_number_is_never_lost(place: int) -> None:
    values = torch.randn(2, 384)
    values[1, place] = math.nan
    found = RunningBest(2, values.device)
    for start in range(0, 384, 128):
        found.add(values[:, start : start + 128], values[:, start : start + 128], start)
    assert found.value.isnan().tolist() == [False, True]
