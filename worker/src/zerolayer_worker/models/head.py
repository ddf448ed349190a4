"""The LM head, held as tiles so that scores of the whole vocabulary never exist at once."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.models.linear import Linear

TILE_ROWS = 8192


@dataclass(frozen=True, slots=True)
class HeadTile:
    """Rows `start … start + width - 1` of the head."""

    start: int
    width: int
    product: Callable[[Tensor], Tensor]

    def scores(self, hidden: Tensor) -> Tensor:
        """`hidden` `[rows, hidden_size]` → fp32 scores `[rows, width]`."""
        return self.product(hidden).float()


class LmHead:
    """The output projection cut into tiles of at most `tile_rows` tokens."""

    def __init__(
        self,
        weight: Tensor,
        tile_rows: int = TILE_ROWS,
        product: Callable[[Tensor], Callable[[Tensor], Tensor]] = Linear,
    ) -> None:
        """Takes `weight` `[vocab, hidden_size]`; `product` lays a tile `[width, hidden_size]` out."""
        self.vocab_size: int = weight.shape[0]
        self.tiles = tuple(
            HeadTile(start, part.shape[0], product(part))
            for start, part in zip(
                range(0, self.vocab_size, tile_rows), torch.split(weight, tile_rows), strict=True
            )
        )
