import pytest
import torch

from zerolayer_worker.models.head import LmHead


@pytest.mark.parametrize("tile_rows", [1, 7, 64, 100, 101])
def test_tiles_cover_the_vocabulary_in_order(tile_rows: int) -> None:
    weight, hidden = torch.randn(100, 16), torch.randn(3, 16)
    head = LmHead(weight, tile_rows)
    assert head.vocab_size == 100
    assert [tile.start for tile in head.tiles] == list(range(0, 100, tile_rows))
    scores = torch.cat([tile.scores(hidden) for tile in head.tiles], dim=1)
    torch.testing.assert_close(scores, hidden @ weight.T)
    assert all(tile.scores(hidden).shape == (3, tile.width) for tile in head.tiles)


def test_scores_are_fp32_whatever_the_weights_are() -> None:
    head = LmHead(torch.randn(10, 16, dtype=torch.bfloat16))
    assert head.tiles[0].scores(torch.randn(2, 16, dtype=torch.bfloat16)).dtype == torch.float32
