"""A worker whose products depend on the batch: what its clients are told, over HTTP."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from zerolayer_dev.testing.serving import running
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.linear import Linear
from zerolayer_worker.models.native.model import NativeModel
from zerolayer_worker.server.app import serving_app
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics

pytestmark = [pytest.mark.promise("determinism")]


def torch_products_depend_on_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Linear.__call__

    def crooked(self: Linear, rows: torch.Tensor) -> torch.Tensor:
        return original(self, rows) * (1 + 3e-7 * torch.arange(rows.shape[0])[:, None])

    monkeypatch.setattr(Linear, "__call__", crooked)


def native_steps_depend_on_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    original = NativeModel.decode

    def crooked(self: NativeModel, *arguments: Any) -> torch.Tensor:
        states = original(self, *arguments)
        return states * (1 + 3e-7 * torch.arange(states.shape[0])[:, None])

    monkeypatch.setattr(NativeModel, "decode", crooked)


FAULTS = {"torch": torch_products_depend_on_the_place, "native": native_steps_depend_on_the_place}


@pytest.fixture(params=FAULTS)
def faulty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TorchEngine]:
    """An engine of which one of the two kinds of kernels is at fault."""
    # Heads of 32, as the native library needs them.
    folder = make_tiny_model(tmp_path / "model", num_attention_heads=2, num_key_value_heads=1)
    config = EngineConfig(
        folder,
        "tiny",
        dtype="float32",
        kernels=request.param,
        threads=1,
        max_batch_size=4,
        warmup_max_tokens=1,
        warmup_settle_ratio=1000.0,
        consistency_share=0.0,
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        FAULTS[request.param](monkeypatch)
        engine = load_engine(config, lambda _stage: None)
        yield engine
        engine.close()


@pytest.fixture
async def url(faulty: TorchEngine) -> AsyncIterator[str]:
    lifecycle = Lifecycle(30)
    lifecycle.loaded(faulty, {})
    serving = Serving(faulty, lifecycle, Metrics(lifecycle))
    async with running(serving_app(serving), serving.identity) as (url, _):
        yield url


BODY = {"model": "tiny", "max_tokens": 2, "messages": [{"role": "user", "content": "Hi"}]}
ROUTES = ("/v1/messages", "/v1/chat/completions")


async def ask(url: str, route: str, intent: str, *, stream: bool = False) -> httpx.Response:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        headers = {"anthropic-sampling-intent": intent}
        return await client.post(route, json={**BODY, "stream": stream}, headers=headers)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_failed_self_test_refuses_the_deterministic_intent(
    url: str, stream: bool, figures: Callable[..., None]
) -> None:
    """A worker whose self-test fails refuses the deterministic intent by 503 and says why and what to do."""
    for route in ROUTES:
        refused = await ask(url, route, "deterministic", stream=stream)
        assert refused.status_code == 503
        message = refused.json()["error"]["message"]
        assert message == (
            "intent: deterministic is not available on this worker (self-test: a sequence's scores depend on "
            "the batch it runs in); ask for balanced or creative"
        )
        for intent in ("balanced", "creative"):
            answered = await ask(url, route, intent, stream=stream)
            assert answered.status_code == 200
            assert answered.headers["x-anthropic-sampling-intent"] == intent
    figures(told=message)
