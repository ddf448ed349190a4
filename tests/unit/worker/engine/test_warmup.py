import asyncio
from collections.abc import AsyncGenerator, Iterator

import pytest

from zerolayer_worker.engine import warmup
from zerolayer_worker.engine.api import EngineEvent, Failed, Finished, FinishReason, GenerationRequest
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.engine.warmup import WarmupError, warm_up


class FakeEngine:
    """Counts requests; a clock that the requests move on."""

    def __init__(self, engine: TorchEngine, costs: Iterator[float], event: EngineEvent | None = None) -> None:
        self.info, self.encoder = engine.info, engine.encoder
        self.requests: list[GenerationRequest] = []
        self.now = 0.0
        self._costs = costs
        self._event = event or Finished(FinishReason.LENGTH, 1, 1)

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[EngineEvent]:
        self.requests.append(request)
        self.now += next(self._costs)
        yield self._event

    def monotonic(self) -> float:
        return self.now


def run(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, prompt: str | None = None, timeout_s: float = 1e6
) -> int:
    monkeypatch.setattr(warmup.time, "monotonic", engine.monotonic)
    return warm_up(
        engine,  # type: ignore[arg-type]
        prompt=prompt,
        max_tokens=4,
        settle_ratio=1.5,
        timeout_s=timeout_s,
    )


def per_round(*seconds: float, requests: int = 3) -> Iterator[float]:
    return iter([second for second in seconds for _ in range(requests)])


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [((1.0, 1.0), 2), ((10.0, 2.0, 1.0, 0.9), 4), ((10.0, 9.0), 2), ((3.0, 1.0, 1.0), 3)],
)
def test_ends_when_latency_has_settled(
    shared_engine: TorchEngine, monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, ...], rounds: int
) -> None:
    assert run(FakeEngine(shared_engine, per_round(*seconds)), monkeypatch) == rounds


def test_asks_prompts_of_several_lengths_and_the_given_one(
    shared_engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine(shared_engine, per_round(1.0, 1.0, requests=4))
    run(engine, monkeypatch, prompt="Good morning")
    lengths = {len(request.prompt_ids) for request in engine.requests}
    assert len(lengths) == 4
    assert shared_engine.encoder.encode_text("Good morning") in {r.prompt_ids for r in engine.requests}
    assert len({request.sampling for request in engine.requests}) == 3
    assert all(len(r.prompt_ids) + r.max_tokens <= engine.info.max_model_len for r in engine.requests)


def test_gives_up_in_time(shared_engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WarmupError, match="did not settle within 5 s"):
        run(FakeEngine(shared_engine, per_round(1.5, 0.5, 0.1)), monkeypatch, timeout_s=5.0)


def test_a_failed_request_is_an_error(shared_engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WarmupError, match="a warm-up request failed: broken"):
        run(FakeEngine(shared_engine, per_round(1.0), Failed("broken")), monkeypatch)


def test_works_beside_a_running_event_loop(shared_engine: TorchEngine) -> None:
    async def main() -> int:
        return await asyncio.to_thread(
            warm_up, shared_engine, prompt=None, max_tokens=2, settle_ratio=1000.0, timeout_s=60.0
        )

    assert asyncio.run(main()) == 2
