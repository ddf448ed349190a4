"""The sampler for CPUs: the library of the decode step looks at each tile right behind its product."""

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from zerolayer_worker.sampling.noise import gumbel, row_keys
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls
from zerolayer_worker.sampling.tiled import CANDIDATES, TiledSampler

# The structures of `models/native/csrc/choice.h`.
_WISH: Final = struct.Struct("=Qqdddq3q3f3i")
_OUTCOME: Final = struct.Struct("=iidqff")
_GREEDY, _DRAWN, _FILTERED = 0, 1, 2
_DECIDED, _OPEN, _BROKEN, _BEYOND = range(4)
# How much longer the second walk's list is.
_LONGER: Final = 16
_SEED_MASK: Final = (1 << 64) - 1
_NOTHING: Final = SamplingControls()
_UNDECIDED: Final = Choice(0)


class Choosing(Protocol):
    """The native step; see `models.native.choosing.NativeChoosing`."""

    @property
    def library(self) -> str:
        """Names the library."""
        ...

    def begin(self, wishes: bytes, count: int, vocab_size: int, candidates: int, *, again: bool) -> None:
        """Takes the rows' wishes."""
        ...

    def take(self, scores: Tensor, start: int) -> None:
        """Takes the next tile's scores."""
        ...

    def finish(self, outcomes: bytearray) -> None:
        """Writes the outcomes."""
        ...

    def finalists(self, row: int, count: int) -> Sequence[tuple[int, float, float]]:
        """A row's finalists."""
        ...

    def best(self, row: int, most: int) -> Sequence[tuple[int, float]]:
        """A row's best tokens."""
        ...


class NativeSampler:
    """Chooses the tokens that `TiledSampler` chooses for the same noise.

    Where a filter's cut lies beyond the list, a second walk makes a longer one. What lies beyond that too,
    cuts within the rounding of a sum, and infinite scores are the tiled sampler's. Which rows these are
    depends on the row alone, never on the batch.
    """

    def __init__(self, head: Head, choosing: Choosing, candidates: int = CANDIDATES) -> None:
        """`candidates` is the length of the list of best tokens that filters are decided from."""
        self._head = head
        self._choosing = choosing
        self._candidates = candidates
        self._tiled = TiledSampler(head, candidates)
        self.second_passes = 0

    @property
    def kernels(self) -> str:
        """Names the library; part of the fingerprint, as the last bits of log-probabilities are its own."""
        return self._choosing.library

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider.sample`."""
        choices = [_UNDECIDED] * len(controls)
        beyond, left = self._choose(hidden, controls, range(len(controls)), choices)
        self.second_passes += len(beyond) + len(left)
        if beyond:
            beyond, more = self._choose(hidden, controls, beyond, choices, again=True)
            left += beyond + more
        if left:
            found = self._tiled.sample(hidden, _only(left, controls))
            for row in left:
                choices[row] = found[row]
        return choices

    def _choose(
        self,
        hidden: Tensor,
        controls: Sequence[SamplingControls],
        rows: Sequence[int],
        choices: list[Choice],
        *,
        again: bool = False,
    ) -> tuple[list[int], list[int]]:
        """One walk for some rows, whose `choices` it sets where they are decided.

        Returns:
            The rows whose cut lies beyond the list, and those that are torch's to decide.
        """
        left: dict[int, list[int]] = {_BEYOND: [], _OPEN: []}
        outcomes = self._walk(hidden, _only(rows, controls) if again else controls, again=again)
        for row, (decision, finalists, total, token, _, raw) in enumerate(outcomes):
            if row not in rows:
                continue
            if decision == _BROKEN:
                raise FloatingPointError("the model's scores are not numbers")
            if decision != _DECIDED:
                left[decision].append(row)
                continue
            control, chosen = controls[row], (token, raw)
            if finalists > 1:
                chosen = _among(self._choosing.finalists(row, finalists), control)
            reported = control.logprobs is not None
            choices[row] = (
                self._report(row, control, *chosen, total) if reported else Choice(token_id=chosen[0])
            )
        return left[_BEYOND], left[_OPEN]

    def _walk(
        self, hidden: Tensor, controls: Sequence[SamplingControls], *, again: bool
    ) -> Iterator[tuple[Any, ...]]:
        """The outcomes, one per row, in the fields of `_OUTCOME`."""
        vocab, choosing = self._head.vocab_size, self._choosing
        wishes = b"".join([_wish(control, vocab) for control in controls])
        candidates = self._candidates * (_LONGER if again else 1)
        choosing.begin(wishes, len(controls), vocab, candidates, again=again)
        for tile in self._head.tiles:
            choosing.take(tile.scores(hidden), tile.start)
        outcomes = bytearray(_OUTCOME.size * len(controls))
        choosing.finish(outcomes)
        return _OUTCOME.iter_unpack(outcomes)

    def _report(self, row: int, control: SamplingControls, token: int, raw: float, total: float) -> Choice:
        best = self._choosing.best(row, control.logprobs or 0)
        return Choice(token, raw - total, tuple((i, score - total) for i, score in best))


def _only(rows: Sequence[int], controls: Sequence[SamplingControls]) -> list[SamplingControls]:
    """The whole step once more, so that products have the rows that they always have; other rows are idle."""
    return [control if row in rows else _NOTHING for row, control in enumerate(controls)]


def _wish(control: SamplingControls, vocab: int) -> bytes:
    """The fields of `Wish`."""
    ids = counts = entries = 0
    if control.history is not None:
        (ids, entries), (counts, _) = control.history.ids.buffer_info(), control.history.counts.buffer_info()
    kind = _GREEDY if control.temperature == 0 else _FILTERED if control.filtered else _DRAWN
    return _WISH.pack(
        control.seed & _SEED_MASK,
        control.position,
        control.temperature,
        control.top_p,
        math.log(control.min_p) if control.min_p else -math.inf,
        min(control.top_k or vocab, vocab),
        ids,
        counts,
        entries,
        control.repetition_penalty,
        control.presence_penalty,
        control.frequency_penalty,
        -1 if control.logprobs is None else control.logprobs,
        kind,
        0,
    )


def _among(finalists: Sequence[tuple[int, float, float]], control: SamplingControls) -> tuple[int, float]:
    """The finalist that the tiled sampler's arithmetic prefers, and its score before penalties."""
    token_ids = torch.tensor([token for token, _, _ in finalists])
    noise = gumbel(row_keys([control], token_ids.device), token_ids)[0]
    # `UnfilteredRows` adds in fp32, `draw` in fp64.
    dtype = torch.float64 if control.filtered else torch.float32
    scores, temperature = (
        torch.tensor(values, dtype=dtype)
        for values in ([score for _, score, _ in finalists], control.temperature)
    )
    values = scores / temperature + noise
    best = values == values.max()
    token, place = min((token, place) for place, (token, _, _) in enumerate(finalists) if best[place])
    return token, finalists[place][2]
