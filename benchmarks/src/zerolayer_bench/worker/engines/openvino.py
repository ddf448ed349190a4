"""OpenVINO GenAI's continuous batching over the GGUF file."""

from collections.abc import Sequence

import numpy as np
import openvino  # pyright: ignore[reportMissingImports] - as in llama_cpp.py
import openvino_genai  # pyright: ignore[reportMissingImports] - as in llama_cpp.py

from zerolayer_bench.worker.cases import Answer
from zerolayer_bench.worker.engines.base import Setup, Stopwatch

# GiB for keys and values; taken at once, so that no cell pays for growth.
_CACHE_GIB = 4


class OpenVino:
    """`ContinuousBatchingPipeline` on the CPU, all settings but the prefix cache at their defaults."""

    def __init__(self, setup: Setup) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = False
        scheduler.cache_size = _CACHE_GIB
        scheduler.max_num_seqs = setup.batch
        self._pipe = openvino_genai.ContinuousBatchingPipeline(
            str(setup.gguf), scheduler, "CPU", {"INFERENCE_NUM_THREADS": setup.threads}
        )

    def generate(self, prompts: Sequence[Sequence[int]], new: int) -> list[Answer]:
        """See `base.Engine`."""
        wish = openvino_genai.GenerationConfig()
        wish.max_new_tokens = new
        wish.ignore_eos = True
        wish.do_sample = False
        wish.apply_chat_template = False
        watches = [Stopwatch() for _ in prompts]
        handles = [
            self._pipe.add_request(index, openvino.Tensor(np.array([prompt], dtype=np.int64)), wish)
            for index, prompt in enumerate(prompts)
        ]
        while self._pipe.has_non_finished_requests():
            self._pipe.step()
            for handle, watch in zip(handles, watches, strict=True):
                while handle.can_read():
                    for output in handle.read().values():
                        watch.take(output.generated_ids)
        return [watch.answer() for watch in watches]

    def close(self) -> None:
        """See `base.Engine`."""
