"""Runs a step's plan on the model: the only place where sequences become tensors."""

from collections.abc import Mapping
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from zerolayer_worker.engine.scheduler import DecodeRow, PrefillChunk, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.sampling.entropy import EntropyRouter
from zerolayer_worker.sampling.provider import Choice, SamplerProvider, SamplingControls

if TYPE_CHECKING:
    from zerolayer_worker.engine.graphs import DecodeGraphs


class Runner:
    """Owns the model, its cache and the sampler.

    Args:
        row_multiple: rows of decode and head products are filled up to a multiple of this, because a
            row's bits may depend on how many rows there are. The self-test chooses it.
        sizes: numbers of rows, ascending, one of which all steps are filled up to, and at least to
            `row_multiple` where that is among them; none allows any multiple.
        router: steers the sampling of the intents that vary; None leaves them at their fixed parameters.

    Attributes:
        graphs: decode steps that were captured; the others run as they are.
    """

    def __init__(
        self,
        model: Transformer,
        cache: KvCache,
        sampler: SamplerProvider,
        row_multiple: int = 1,
        *,
        sizes: tuple[int, ...] = (),
        router: EntropyRouter | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.sampler = sampler
        self.row_multiple = row_multiple
        self.sizes = sizes
        self.graphs: DecodeGraphs | None = None
        self.router = router

    @torch.inference_mode()
    def run(self, plan: StepPlan, sequences: Mapping[str, Sequence]) -> dict[str, Choice]:
        """Computes the plan; returns the chosen token of every sequence that got one."""
        states: list[Tensor] = []
        chosen: list[str] = []
        if plan.decode:
            state = self.decode(plan.decode, sequences)
            last = [index for index, row in enumerate(plan.decode) if row.last]
            states.append(state if len(last) == len(plan.decode) else state[last])
            chosen += [plan.decode[index].request_id for index in last]
        if plan.prefill is not None:
            state = self._prefill(plan.prefill, sequences[plan.prefill.request_id])
            if plan.prefill.last:
                states.append(state)
                chosen.append(plan.prefill.request_id)
        if not chosen:
            return {}
        found = torch.cat(states)
        controls = self._controls([sequences[request_id] for request_id in chosen], found)
        choices = self.sampler.sample(self._fill(found), controls)
        return dict(zip(chosen, choices, strict=True))

    def decode(self, rows: tuple[DecodeRow, ...], sequences: Mapping[str, Sequence]) -> Tensor:
        """Final hidden states of the rows' tokens, `[rows, hidden_size]`."""
        tokens = [sequences[row.request_id].token_at(row.position) for row in rows]
        states = self.states(tokens, [row.position for row in rows], [row.table for row in rows])
        return states[: len(rows)]

    def states(self, tokens: Many[int], positions: Many[int], tables: Many[Many[int]]) -> Tensor:
        """Final hidden states of one token per row, and of rows that fill up: `[filled rows, hidden_size]`.

        They hold until the next call.
        """
        padding = [0] * (self.filled(len(tables)) - len(tables))
        step = [*tokens, *padding], [*positions, *padding], tables
        found = None if self.graphs is None else self.graphs.run(*step)
        return self.model.decode(*step, self.cache) if found is None else found

    def filled(self, rows: int) -> int:
        """How many rows a step of so many is computed with."""
        if self.sizes and rows <= self.sizes[-1]:
            least = max(rows, min(self.row_multiple, self.sizes[-1]))
            return next(size for size in self.sizes if size >= least)
        return rows + -rows % self.row_multiple

    def _controls(self, running: list[Sequence], states: Tensor) -> list[SamplingControls]:
        controls = [sequence.controls() for sequence in running]
        if self.router is None:
            return controls
        intents = [sequence.request.sampling.intent for sequence in running]
        return self.router.steer(controls, intents, states, [each.newest_token for each in running])

    def _prefill(self, chunk: PrefillChunk, sequence: Sequence) -> Tensor:
        token_ids = sequence.request.prompt_ids[chunk.start : chunk.start + chunk.count]
        return self.model.prefill(token_ids, chunk.start, chunk.table, self.cache)

    def _fill(self, states: Tensor) -> Tensor:
        missing = self.filled(states.shape[0]) - states.shape[0]
        return torch.nn.functional.pad(states, (0, 0, 0, missing)) if missing else states
