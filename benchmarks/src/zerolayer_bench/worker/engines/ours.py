"""Our own engine, as the server uses it."""

import asyncio
from collections.abc import Sequence

from zerolayer_bench.worker.cases import Answer
from zerolayer_bench.worker.engines.base import Setup, Stopwatch, UnavailableError
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine

# Type of the activations, and how the weights are kept.
_PRECISIONS = {
    "fp32": ("float32", "none"),
    "bf16": ("bfloat16", "none"),
    "int8": ("auto", "int8"),
    "int4": ("auto", "int4"),
}


class Ours:
    """`zerolayer_worker.engine`, with its scheduler, cache and sampler; without the HTTP server."""

    def __init__(self, setup: Setup) -> None:
        dtype, quantization = _PRECISIONS[setup.precision]
        config = EngineConfig(
            model_path=setup.weights.folder,
            served_name="benchmark",
            dtype=dtype,
            quantization=quantization,
            max_model_len=setup.length,
            max_batch_size=setup.batch,
            threads=setup.threads,
            consistency_share=0.0,
        )
        try:
            self._engine = load_engine(config, lambda _stage: None)
        except ValueError as error:
            raise UnavailableError(str(error)) from error

    def generate(self, prompts: Sequence[Sequence[int]], new: int) -> list[Answer]:
        """See `base.Engine`."""
        return asyncio.run(self._all(prompts, new))

    def close(self) -> None:
        """See `base.Engine`."""
        self._engine.close()

    async def _all(self, prompts: Sequence[Sequence[int]], new: int) -> list[Answer]:
        watches = [Stopwatch() for _ in prompts]
        await asyncio.gather(
            *(self._one(tuple(prompt), new, watch) for prompt, watch in zip(prompts, watches, strict=True))
        )
        return [watch.answer() for watch in watches]

    async def _one(self, prompt: tuple[int, ...], new: int, watch: Stopwatch) -> None:
        request = GenerationRequest("benchmark", prompt, new, SamplingParams(temperature=0.0))
        async for event in self._engine.generate(request):
            if isinstance(event, TextDelta):
                watch.take(event.token_ids)
