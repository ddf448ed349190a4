"""Each row's best tokens so far, found without ranking a tile."""

import math

import numpy as np
import torch
from torch import Tensor

from zerolayer_worker.sampling.order import key_scores, key_token_ids, rank_keys
from zerolayer_worker.sampling.rows import tensor_of

# Below every key: no score's bits reach it.
_NOTHING = -(1 << 63)


class BestList:
    """The `size` best tokens of each row, by score and then by the lower id.

    Only tokens that beat the worst one listed are ever ranked. For the first tile, whose tokens have nothing
    to beat, a lower bound stands in: of any `size` groups of tokens each holds one that is at least as good
    as the worst of the groups' best ones.
    """

    def __init__(self, rows: int, size: int, device: torch.device) -> None:
        self._size = size
        self._keys = torch.empty(rows, 0, dtype=torch.int64, device=device)
        self._worst: Tensor | None = None

    def add(self, scores: Tensor, start: int) -> None:
        """Takes the next tile's fp32 scores, `[rows, width]`; `start` is its first token."""
        found = self._candidates(scores, start)
        if found is None:
            return
        self._keys = torch.cat((self._keys, found), dim=1)
        if self._keys.shape[1] >= self._size:
            if self._keys.shape[1] > self._size:
                self._keys = self._keys.topk(self._size, dim=1, sorted=False).values
            self._worst = key_scores(self._keys.amin(dim=1, keepdim=True))

    def result(self) -> tuple[Tensor, Tensor]:
        """Scores fp32 and token ids int64 of the list, best first, both `[rows, length]`.

        A row in which any score was no number begins with infinity.
        """
        keys = self._keys.sort(dim=1, descending=True).values
        return key_scores(keys), key_token_ids(keys)

    def _candidates(self, scores: Tensor, start: int) -> Tensor | None:
        """Keys `[rows, n]` of what may belong to the list, filled up with `_NOTHING`; None for no token."""
        rows, width = scores.shape
        if self._worst is not None:
            # What is equal to the worst has a higher id than it, and stays out.
            places = _above(scores, self._worst, strict=True)
        elif self._keys.shape[1] or width < 4 * self._size:
            return _keys(scores, torch.arange(start, start + width, device=scores.device))
        else:
            places = _above(scores, self._lower_bound(scores), strict=False)
        if not len(places):
            return None
        if rows == 1:
            return _keys(scores[0, places], places + start)[None]
        row, column = places // width, places % width
        return _in_rows(_keys(scores[row, column], column + start), row, rows)

    def _lower_bound(self, scores: Tensor) -> Tensor:
        groups = scores.shape[1] // 8 if scores.shape[1] >= 8 * self._size else self._size
        whole = scores[:, : scores.shape[1] // groups * groups]
        best = whole.reshape(scores.shape[0], -1, groups).amax(dim=1)
        return best.topk(self._size, dim=1, sorted=False).values.amin(dim=1, keepdim=True)


def _above(scores: Tensor, bound: Tensor, *, strict: bool) -> Tensor:
    """Flat places, in ascending order, of the scores above the row's bound, or that are no numbers."""
    if scores.device.type == "cpu":
        # torch's comparison and nonzero take four times as long on CPUs.
        values, least = scores.numpy(), bound.numpy()
        return tensor_of(np.flatnonzero(~(values <= least if strict else values < least)))
    below = scores <= bound if strict else scores < bound
    return (~below).view(-1).nonzero()[:, 0]


def _keys(scores: Tensor, token_ids: Tensor) -> Tensor:
    """What is no number goes first, as infinity; by its sign bit it might go last and be forgotten."""
    return rank_keys(scores.nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf), token_ids)


def _in_rows(keys: Tensor, row: Tensor, rows: int) -> Tensor:
    """Keys `[n]` with ascending row numbers as `[rows, most]`."""
    counts = torch.bincount(row, minlength=rows)
    place = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    table = torch.full((rows, int(counts.max())), _NOTHING, dtype=torch.int64, device=row.device)
    return table.index_put_((row, place), keys)
