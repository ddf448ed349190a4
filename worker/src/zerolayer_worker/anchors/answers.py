"""Lets a model answer many prompts, by the forward pass that serves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables, pages_for
from zerolayer_worker.models.packing import shared_length
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

SLOTS = 16


@dataclass(slots=True)
class _Running:
    """One prompt while it is answered."""

    index: int
    table: Sequence[int]
    prompt: Sequence[int]
    answer: list[int] = field(default_factory=list[int])

    @property
    def position(self) -> int:
        """Of the newest token."""
        return len(self.prompt) + len(self.answer) - 1


class Answerer:
    """A model with one set of weights; prompts run in batches."""

    def __init__(self, config: ModelConfig, tensors: Mapping[str, Tensor], length: int) -> None:
        """`tensors` stay as they are; `length` is the longest prompt with its answer, in tokens."""
        self._config = config
        with torch.inference_mode():
            self._model = Transformer(
                config, {name: t.detach() for name, t in tensors.items()}, length=length
            )
            self._tables = fixed_tables(SLOTS, length)
            pages = self._tables[-1][-1] + 1
            self._cache = KvCache(config, pages, self._model.dtype, self._model.device)
        self._sampler = TiledSampler(self._model.head)

    @torch.inference_mode()
    def answer(
        self,
        prompts: Sequence[Sequence[int]],
        max_tokens: int,
        controls: SamplingControls | None = None,
        *,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> list[list[int]]:
        """The tokens after each prompt, without the one that ends an answer; greedy without `controls`.

        With a seed, every prompt has noise of its own. `goes_on` is asked before each token but an answer's
        first; once it says no, answers end where they are.
        """
        answers: list[list[int]] = [[] for _ in prompts]
        # Prompts of one length end together more often, and none waits for a longer one.
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        for first in range(0, len(order), SLOTS):
            chosen = order[first : first + SLOTS]
            batch = [_Running(i, table, prompts[i]) for i, table in zip(chosen, self._tables, strict=False)]
            self._run(batch, max_tokens, controls or SamplingControls(), goes_on)
            for each in batch:
                answers[each.index] = each.answer
        return answers

    def _run(
        self,
        batch: list[_Running],
        max_tokens: int,
        controls: SamplingControls,
        goes_on: Callable[[], bool],
    ) -> None:
        states = self._prefill(batch)
        running = self._choose(batch, states, controls)
        for _ in range(max_tokens - 1):
            if not running or not goes_on():
                return
            tokens, positions = [each.answer[-1] for each in running], [each.position for each in running]
            states = self._model.decode(tokens, positions, [each.table for each in running], self._cache)
            running = self._choose(running, states, controls)

    def _prefill(self, batch: list[_Running]) -> Tensor:
        """The prompts' last hidden states; what all of them begin with is computed once."""
        shared = min(shared_length([each.prompt for each in batch]), min(len(e.prompt) for e in batch) - 1)
        if shared > 0:
            self._model.prefill(batch[0].prompt[:shared], 0, batch[0].table, self._cache)
        pages = pages_for(shared, self._cache.page)
        for stored in (self._cache.keys, self._cache.values):
            for each in batch[1:]:
                stored[:, list(each.table[:pages])] = stored[:, list(batch[0].table[:pages])]
        rest = [(each.prompt[shared:], each.table) for each in batch]
        return torch.cat([self._model.prefill(ids, shared, table, self._cache) for ids, table in rest])

    def _choose(self, running: list[_Running], states: Tensor, controls: SamplingControls) -> list[_Running]:
        """Appends one token to each; returns those that go on."""
        wanted = [
            SamplingControls(
                temperature=controls.temperature,
                min_p=controls.min_p,
                seed=controls.seed + each.index,
                position=each.position + 1,
            )
            for each in running
        ]
        goes_on: list[_Running] = []
        for each, choice in zip(running, self._sampler.sample(states, wanted), strict=True):
            if choice.token_id not in self._config.eos_ids:
                each.answer.append(choice.token_id)
                goes_on.append(each)
        return goes_on
