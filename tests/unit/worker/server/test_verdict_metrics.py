"""What two revisions are compared by: answers by outcome, times with fine bounds, repeated answers."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.engine.api import (
    EngineError,
    EngineEvent,
    Failed,
    GenerationRequest,
    IntentUnavailableError,
    OverloadedError,
    PromptTooLongError,
    RepeatCounts,
    TextDelta,
)
from zerolayer_worker.server import limits
from zerolayer_worker.server.auth import KeyRing
from zerolayer_worker.server.context import Call
from zerolayer_worker.server.errors import Protocol
from zerolayer_worker.server.genai_metrics import Operation
from zerolayer_worker.server.generation import Meter

BODY: dict[str, Any] = {
    "model": "fake-model",
    "max_tokens": 20,
    "messages": [{"role": "user", "content": "hi"}],
}


def outcomes(live: Any) -> tuple[float, float]:
    """Complete answers and failed ones."""
    name = "zero_layer_answers_total"
    return live.metric(name, outcome="ok"), live.metric(name, outcome="error")


def bounds(live: Any, name: str) -> list[float]:
    found = {
        float(sample.labels["le"])
        for family in live.serving.metrics.registry.collect()
        for sample in family.samples
        if sample.name == f"{name}_bucket"
    }
    return sorted(found)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
async def test_complete_answers(live: Any, path: str, stream: bool) -> None:
    registry = live.serving.metrics.registry
    assert registry.get_sample_value("zero_layer_answers_total", {"outcome": "error"}) == 0
    assert (await live.http.post(path, json=BODY | {"stream": stream})).status_code == 200
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert outcomes(live) == (1, 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("refusal", "counted"),
    [
        (EngineError("broken"), 1),
        (RuntimeError("a fault of ours"), 1),
        (IntentUnavailableError("the self-test failed"), 1),
        (OverloadedError("full", retry_after=1), 0),
        (PromptTooLongError("too long"), 0),
    ],
)
async def test_refusals_by_the_engine(
    live: Any, engine: Any, refusal: Exception, counted: int, stream: bool
) -> None:
    engine.refusal = refusal
    answer = await live.http.post("/v1/messages", json=BODY | {"stream": stream})
    assert (answer.status_code >= 500) == bool(counted)
    assert outcomes(live) == (0, counted)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("events", [[Failed("broken")], [TextDelta("a", (1,)), Failed("broken")]])
async def test_answers_that_fail_on_the_way(
    live: Any, engine: Any, events: list[EngineEvent], stream: bool
) -> None:
    engine.events = events
    await live.http.post("/v1/messages", json=BODY | {"stream": stream})
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert outcomes(live) == (0, 1)


async def test_a_refusal_that_comes_late_into_a_stream_is_no_failure(
    live: Any, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ADMISSION_S", 0)

    async def refuse(_request: GenerationRequest) -> AsyncGenerator[EngineEvent]:
        await live.until(lambda: live.metric("zero_layer_prompt_tokens_total") > 0)
        raise OverloadedError("full", retry_after=1)
        yield TextDelta("")

    monkeypatch.setattr(engine, "generate", refuse)
    answer = await live.http.post("/v1/messages", json=BODY | {"stream": True})
    assert "rate_limit_error" in answer.text
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert outcomes(live) == (0, 0)


async def test_what_is_no_fault_of_the_worker(live: Any, start: Any, engine: Any, tmp_path: Path) -> None:
    await live.http.post("/v1/messages", json=BODY | {"model": "another"})
    await live.http.post("/v1/messages", content=b"{")
    await live.http.get("/v1/models")
    await live.http.post("/v1/messages/count_tokens", json={**BODY, "max_tokens": None})
    await live.http.get("/nowhere")
    assert outcomes(live) == (0, 0)
    guarded = await start(engine, keys=KeyRing(tmp_path, on_faults=lambda _: None))
    assert (await guarded.http.post("/v1/messages", json=BODY)).status_code == 401
    assert outcomes(guarded) == (0, 0)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_is_neither(live: Any, engine: Any, stream: bool) -> None:
    engine.gate.clear()
    task = asyncio.create_task(live.http.post("/v1/messages", json=BODY | {"stream": stream}))
    await live.until(lambda: live.lifecycle.in_flight == 1 and bool(engine.requests))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert outcomes(live) == (0, 0)


async def test_an_answer_cut_off_by_the_end_of_a_drain_failed(live: Any, engine: Any) -> None:
    engine.gate.clear()
    task = asyncio.create_task(live.http.post("/v1/messages", json=BODY | {"stream": True}))
    await live.until(lambda: bool(engine.requests))
    live.lifecycle.cut_off()
    await task
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert outcomes(live) == (0, 1)


@pytest.mark.parametrize("name", ["zero_layer_time_to_first_token_seconds", "zero_layer_inter_token_seconds"])
async def test_bounds_are_fine_up_to_a_minute(live: Any, name: str) -> None:
    await live.http.post("/v1/messages", json=BODY)
    fine = [bound for bound in bounds(live, name) if bound <= 60]
    assert (fine[0], fine[-1]) == (0.001, 60)
    assert max(after / before for before, after in itertools.pairwise(fine)) <= 1.5


async def test_gaps_are_between_tokens_as_the_engine_made_them(live: Any) -> None:
    """Text that was held back comes with the tokens it is made of, and counts for each of them."""
    operation = Operation("chat", "fake-model")
    request = GenerationRequest("r", (1, 2, 3), 4)
    meter = Meter(live.serving.metrics, "/v1/messages", Call("r", Protocol.MESSAGES), operation, request)
    for made, ids in ((10.0, (1,)), (10.3, (2,)), (10.9, (3, 4, 5)), (11.0, ())):
        meter.delta(TextDelta("x", ids, made=made))
    total = live.metric("zero_layer_inter_token_seconds_sum")
    assert total == pytest.approx(0.3 + 0.6)
    assert live.metric("zero_layer_inter_token_seconds_count") == 4
    assert live.metric("zero_layer_inter_token_seconds_bucket", le="0.25") == 3


async def test_repeated_answers_by_result(live: Any, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "zero_layer_consistency_checks_total"
    registry = live.serving.metrics.registry
    assert registry.get_sample_value(name, {"result": "different"}) == 0
    stats = replace(engine.stats(), repeats=RepeatCounts(same=7, different=2))
    monkeypatch.setattr(engine, "stats", lambda: stats)
    assert (live.metric(name, result="same"), live.metric(name, result="different")) == (7, 2)
