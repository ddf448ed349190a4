"""llama.cpp, as `xllamacpp` brings it: its server's own scheduler, called without HTTP."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import xllamacpp  # pyright: ignore[reportMissingImports] - only the environment of `make bench-worker` has it

from zerolayer_bench.worker.cases import Answer
from zerolayer_bench.worker.engines.base import Setup, Stopwatch, UnavailableError

_QUIET = -1


class LlamaCpp:
    """As many slots as requests, each with room for the longest; unquantised keys and values."""

    def __init__(self, setup: Setup) -> None:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(setup.gguf)
        parameters.n_ctx = setup.length * setup.batch
        parameters.n_parallel = setup.batch
        parameters.cpuparams.n_threads = setup.threads
        parameters.cpuparams_batch.n_threads = setup.threads
        parameters.cache_prompt = False
        parameters.cache_ram_mib = 0
        parameters.verbosity = _QUIET
        self._server = xllamacpp.Server(parameters)
        self._threads = ThreadPoolExecutor(setup.batch)

    def generate(self, prompts: Sequence[Sequence[int]], new: int) -> list[Answer]:
        """See `base.Engine`."""
        watches = [Stopwatch() for _ in prompts]
        list(self._threads.map(self._one, prompts, [new] * len(prompts), watches))
        return [watch.answer() for watch in watches]

    def close(self) -> None:
        """See `base.Engine`."""
        self._threads.shutdown()

    def _one(self, prompt: Sequence[int], new: int, watch: Stopwatch) -> None:
        def take(chunk: Mapping[str, Any]) -> bool:
            if "choices" not in chunk:
                raise UnavailableError(f"llama.cpp: {chunk}")
            choice = chunk["choices"][0]
            if choice["finish_reason"] is None:
                watch.take_text(choice["text"])
            return False

        self._server.handle_completions(
            {
                "prompt": list(prompt),
                "n_predict": new,
                "temperature": 0,
                "ignore_eos": True,
                "cache_prompt": False,
                "stream": True,
            },
            take,
        )
