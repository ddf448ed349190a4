"""The worker on a GPU as it is served: its start, its answers, its memory."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_dev.testing.worker_process import WorkerProcess, worker_of
from zerolayer_worker.engine.api import Finished, GenerationRequest, SamplingParams
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.memory import page_bytes
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import PAGE_TOKENS

pytestmark = pytest.mark.gpu

# Keys and values of all its rows take more than any GPU has.
WIDE: dict[str, Any] = {
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "num_hidden_layers": 8,
    "max_position_embeddings": 16384,
    "eos_token_id": 100_000,
}
WIDE_ROWS = 128


@pytest.fixture(scope="session")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("wide"), **WIDE)


def answer(worker: WorkerProcess, prompt: str, **fields: Any) -> dict[str, Any]:
    body = {"model": worker.model, "max_tokens": 32, "messages": [{"role": "user", "content": prompt}]}
    headers = {"anthropic-sampling-intent": "deterministic"}
    found = httpx.post(f"{worker.url}/v1/messages", json=body | fields, headers=headers, timeout=60)
    assert found.status_code == 200, found.text
    return found.json()


@pytest.mark.promise("gpu")
def test_a_worker_serves_on_a_gpu_with_and_without_graphs(demo_model: Path, tmp_path: Path) -> None:
    """A worker process on a GPU says that it captured its steps, and answers alike without."""
    answers = []
    for flag in ("--cuda-graphs", "--no-cuda-graphs"):
        log = tmp_path / flag
        with worker_of(demo_model, log, "--device", "cuda", flag, max_queue=64) as worker:
            stages = httpx.get(f"{worker.ops_url}/startupz", timeout=10).json()["stages"]
            assert ("capture" in stages) == (flag == "--cuda-graphs")
            assert "without CUDA graphs" not in log.read_text()
            found = [answer(worker, "Tell me about rivers.")["content"] for _ in range(2)]
            assert found[0] == found[1]
            answers.append(found[0])
    assert answers[0] == answers[1]


@pytest.mark.promise("gpu")
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_keys_and_values_take_their_share_and_no_more(wide_model: Path, share: float, figures: Any) -> None:
    """`memoryUtilization` bounds keys and values on a GPU, and with all of it a full context still runs."""
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0]
    config = EngineConfig(
        wide_model, "wide", device="cuda", max_batch_size=WIDE_ROWS, memory_utilization=share, max_queue=4
    )
    engine = load_engine(config, lambda _stage: None)
    try:
        pages, length = engine.stats().kv_pages, engine.info.max_model_len
        taken = pages * page_bytes(read_config(wide_model), PAGE_TOKENS, torch.bfloat16.itemsize)
        figures(share=share, free_gib=round(free / 2**30, 1), taken_gib=round(taken / 2**30, 1))
        assert 0.5 * share * free < taken <= share * free
        assert asyncio.run(_answered(engine, length - 8))
    finally:
        engine.close()


async def _answered(engine: TorchEngine, length: int) -> bool:
    prompt = tuple(3 + place % 250 for place in range(length))
    request = GenerationRequest("full", prompt, 8, SamplingParams(temperature=0.0))
    return [isinstance(event, Finished) async for event in engine.generate(request)][-1]
