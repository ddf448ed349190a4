"""The sampler for GPUs: one kernel for the product and the choice, and the tiled one for what it leaves."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from zerolayer_worker.common.transfer import on_device
from zerolayer_worker.sampling import triton_kernel
from zerolayer_worker.sampling.drawing import draw
from zerolayer_worker.sampling.filters import judge
from zerolayer_worker.sampling.noise import row_keys
from zerolayer_worker.sampling.order import key_scores, key_token_ids
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls
from zerolayer_worker.sampling.rows import Rows, listed
from zerolayer_worker.sampling.tiled import CANDIDATES, TiledSampler


class TritonSampler:
    """Greedy and unfiltered rows in the kernel; filtered ones from each tile's best tokens.

    Rows with penalties or log-probabilities, and those whose filters cut beyond what the tiles list, are the
    tiled sampler's. Which it is depends on the row alone, never on the batch.
    """

    def __init__(self, weight: Tensor, head: Head) -> None:
        """Takes the head's `weight` `[vocab, hidden_size]`, contiguous, and the head that holds it."""
        self._weight = weight
        self._tiled = TiledSampler(head)
        self._vocab_size = head.vocab_size
        self._uncertain = 0

    @property
    def second_passes(self) -> int:
        """See `SamplerProvider`."""
        return self._uncertain + self._tiled.second_passes

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider.sample`."""
        states = hidden[: len(controls)]
        whole = [c.history is not None or c.logprobs is not None for c in controls]
        plain = [not (other or c.filtered) for other, c in zip(whole, controls, strict=True)]
        found: dict[int, Choice] = {}
        left = [row for row, other in enumerate(whole) if other]
        rows = self._rows(plain, controls, hidden)
        if rows:
            found |= self._unfiltered(rows, states)
        rows = self._rows([not (a or b) for a, b in zip(whole, plain, strict=True)], controls, hidden)
        if rows:
            chosen = self._filtered(rows, states)
            found |= chosen
            unsure = [row for row in rows.numbers if row not in chosen]
            self._uncertain += len(unsure)
            left += unsure
        if left:
            # The whole step once more, so that products have the rows that they always have.
            every = [c if row in left else replace(c, temperature=0.0) for row, c in enumerate(controls)]
            again = self._tiled.sample(hidden, every)
            found |= {row: again[row] for row in left}
        return [found[row] for row in range(len(controls))]

    def _rows(self, wanted: list[bool], controls: Sequence[SamplingControls], hidden: Tensor) -> Rows:
        return Rows.of((row for row, yes in enumerate(wanted) if yes), controls, hidden.device)

    def _unfiltered(self, rows: Rows, hidden: Tensor) -> dict[int, Choice]:
        keys = row_keys(rows.controls, hidden.device)[:, 0]
        tokens, _, values = triton_kernel.best(
            rows.take(hidden).contiguous(),
            self._weight,
            keys,
            _temperature(rows, hidden.device),
            noisy=any(c.temperature > 0 for c in rows.controls),
        )
        _check(values)
        return {row: Choice(token) for row, token in zip(rows.numbers, listed(tokens), strict=True)}

    def _filtered(self, rows: Rows, hidden: Tensor) -> dict[int, Choice]:
        """The choices of the rows whose filters the tiles' lists decide."""
        temperature = _temperature(rows, hidden.device)
        tiles = triton_kernel.lists(rows.take(hidden).contiguous(), self._weight, temperature)
        _check(tiles.maxima.amax(dim=1))
        keys, complete = _merged(tiles.keys, self._vocab_size)
        scaled = key_scores(keys).double() / temperature[:, None].double()
        total = torch.logsumexp(
            tiles.maxima.double() / temperature[:, None].double() + tiles.sums.double().log(), dim=1
        )
        verdict = judge(scaled, total, rows.controls, self._vocab_size)
        certain = verdict.certain & (verdict.kept <= complete) & _knows_top_k(rows, complete)
        token_ids = key_token_ids(keys)
        place = draw(scaled, token_ids, verdict.kept, rows.controls)
        tokens = listed(token_ids.gather(1, place)[:, 0])
        outcome = zip(rows.numbers, tokens, listed(certain), strict=True)
        return {row: Choice(token) for row, token, sure in outcome if sure}


def _knows_top_k(rows: Rows, complete: Tensor) -> Tensor:
    """Whether the mass that top-p refers to is known: that of the top-k tokens, where both are asked for."""
    limits = [c.top_k if c.top_p < 1 else 0 for c in rows.controls]
    return on_device(limits, torch.int64, complete.device) <= complete


def _temperature(rows: Rows, device: torch.device) -> Tensor:
    return on_device([c.temperature for c in rows.controls], torch.float32, device)


def _check(values: Tensor) -> None:
    if any(map(math.isnan, listed(values))):
        raise FloatingPointError("the model's scores are not numbers")


def _merged(keys: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """The tiles' lists as one ranking, and how much of it is the vocabulary's.

    A tile may hide tokens that rank below the last one that it lists, and none above. So the ranking is
    complete down to the best of the tiles' last ones.
    """
    last = keys[:, :, -1].amax(dim=1, keepdim=True)
    size = min(CANDIDATES, vocab_size, keys[0].numel())
    ranking = keys.flatten(1).topk(size, dim=1).values
    return ranking, (ranking >= last).sum(dim=1)
