"""Hugging Face transformers: one static batch, dynamic cache, its own `generate`."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM, StoppingCriteria, StoppingCriteriaList

from zerolayer_bench.worker.cases import Answer
from zerolayer_bench.worker.engines.base import Setup, Stopwatch

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class _Watch(StoppingCriteria):
    """Is asked after every token, and looks at the clock."""

    def __init__(self, watch: Stopwatch, rows: int) -> None:
        self._watch = watch
        self._go_on = torch.zeros(rows, dtype=torch.bool)

    def __call__(self, *_arguments: Any, **_others: Any) -> Any:
        """Stops nothing."""
        self._watch.take([0])
        return self._go_on


class Transformers:
    """`AutoModelForCausalLM` from the fp32 folder."""

    def __init__(self, setup: Setup) -> None:
        torch.set_num_threads(setup.threads)
        model: Any = AutoModelForCausalLM.from_pretrained(
            setup.weights.folder, dtype=_DTYPES[setup.precision], local_files_only=True
        )
        self._model = model.eval()

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Sequence[int]], new: int) -> list[Answer]:
        """See `base.Engine`."""
        ids = torch.tensor(prompts)
        watch = Stopwatch()
        made = self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new,
            do_sample=False,
            stopping_criteria=StoppingCriteriaList([_Watch(watch, len(prompts))]),
        )
        stamps = tuple(watch.stamps)
        return [Answer(stamps, tuple(row[ids.shape[1] :].tolist())) for row in made]

    def close(self) -> None:
        """See `base.Engine`."""
