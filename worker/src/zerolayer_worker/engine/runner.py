"""Runs a step's plan on the model: the only place where sequences become tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor

from zerolayer_worker.engine.scheduler import DecodeRow, PrefillChunk, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.sampling.entropy import EntropyRouter
from zerolayer_worker.sampling.provider import Choice, SamplerProvider, SamplingControls


class Runner:
    """Owns the model, its cache and the sampler.

    Args:
        row_multiple: rows of decode and head products are filled up to a multiple of this, because a
            row's bits may depend on how many rows there are. The self-test chooses it.
        router: steers the sampling of the intents that vary; None leaves them at their fixed parameters.
    """

    def __init__(
        self,
        model: Transformer,
        cache: KvCache,
        sampler: SamplerProvider,
        row_multiple: int = 1,
        *,
        router: EntropyRouter | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.sampler = sampler
        self.row_multiple = row_multiple
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
        missing = -len(rows) % self.row_multiple
        tokens = [sequences[row.request_id].token_at(row.position) for row in rows] + [0] * missing
        positions = [row.position for row in rows] + [0] * missing
        states = self.model.decode(tokens, positions, [row.table for row in rows], self.cache)
        return states[: len(rows)]

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
        missing = -states.shape[0] % self.row_multiple
        return torch.nn.functional.pad(states, (0, 0, 0, missing)) if missing else states
