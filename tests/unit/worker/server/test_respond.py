"""Clients that go away, answers that take long, and the end of a drain."""

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from zerolayer_worker.server import limits

USER = [{"role": "user", "content": "hi there"}]
BODY = {"model": "fake-model", "max_tokens": 20, "messages": USER}
PATHS = ("/v1/messages", "/v1/chat/completions")


@pytest.fixture
def held(live: Any) -> Any:
    """A server whose engine stops after its first event."""
    live.engine.gate.clear()
    return live


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_goes_away_frees_its_slot(held: Any, path: str, stream: bool) -> None:
    task = asyncio.create_task(held.http.post(path, json={**BODY, "stream": stream}))
    await held.until(lambda: bool(held.engine.requests))
    assert not held.engine.closed.is_set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(30):
        await held.engine.closed.wait()
    await held.until(lambda: held.lifecycle.in_flight == 0)
    assert held.metric("zero_layer_client_disconnects_total") == 1


async def test_a_client_that_closes_its_sending_side_counts_as_gone(held: Any) -> None:
    """The end of a connection looks the same, and must not hold a slot until the answer is complete."""
    reader, writer = await asyncio.open_connection("127.0.0.1", held.port)
    body = b'{"model":"fake-model","max_tokens":9,"messages":[{"role":"user","content":"x"}]}'
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    await held.until(lambda: bool(held.engine.requests))
    writer.write_eof()
    async with asyncio.timeout(30):
        assert await reader.read() == b""
        await held.engine.closed.wait()
    await held.until(lambda: held.metric("zero_layer_client_disconnects_total") == 1)
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_goes_away_in_the_queue_frees_its_place(held: Any) -> None:
    held.engine.hold_first = True
    task = asyncio.create_task(held.http.post("/v1/messages", json={**BODY, "stream": True}))
    await held.until(lambda: bool(held.engine.requests))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(30):
        await held.engine.closed.wait()


async def test_a_streaming_client_that_stops_reading_counts_as_gone(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRITE_TIMEOUT_S", 0.1)
    live.engine.events *= 200_000
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port, limit=1)
    body = b'{"model":"fake-model","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}'
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    async with asyncio.timeout(30):
        await live.engine.closed.wait()
    await live.until(lambda: live.metric("zero_layer_client_disconnects_total") == 1)
    writer.transport.abort()
    del reader


@pytest.mark.parametrize(("path", "ping"), [(PATHS[0], "event: ping"), (PATHS[1], ": keep-alive")])
async def test_long_silence_is_bridged_by_keep_alives(
    held: Any, monkeypatch: pytest.MonkeyPatch, path: str, ping: str
) -> None:
    monkeypatch.setattr(limits, "ADMISSION_S", 0.01)
    monkeypatch.setattr(limits, "PING_INTERVAL_S", 0.02)
    held.engine.hold_first = True
    seen = ""
    async with asyncio.timeout(30), held.http.stream("POST", path, json={**BODY, "stream": True}) as response:
        assert response.status_code == 200
        async for text in response.aiter_text():
            seen += text
            if seen.count(ping) >= 4:
                held.engine.gate.set()
    assert "world" in seen


async def test_an_answer_still_open_at_the_end_of_a_drain_ends_with_the_protocols_error(held: Any) -> None:
    async with AsyncAnthropic(base_url=held.url, api_key="k", max_retries=0) as client:
        stream = await client.messages.create(**BODY, stream=True)
        await held.until(lambda: bool(held.engine.requests))
        held.lifecycle.cut_off()
        with pytest.raises(anthropic.APIStatusError, match="shutting down"):
            [event async for event in stream]
    assert held.metric("zero_layer_drained_streams_cut_total") == 1
    assert held.engine.closed.is_set()


async def test_the_same_for_the_other_protocol_and_for_answers_that_do_not_stream(held: Any) -> None:
    async with AsyncOpenAI(base_url=f"{held.url}/v1", api_key="k", max_retries=0) as client:
        stream = await client.chat.completions.create(model="fake-model", messages=USER, stream=True)
        whole = asyncio.create_task(client.chat.completions.create(model="fake-model", messages=USER))
        await held.until(lambda: len(held.engine.requests) == 2)
        held.lifecycle.cut_off()
        with pytest.raises(openai.APIError, match="shutting down"):
            [chunk async for chunk in stream]
        with pytest.raises(openai.InternalServerError, match="shutting down") as caught:
            await whole
    assert caught.value.status_code == 503
    assert caught.value.response.headers["retry-after"] == "1"
    assert held.metric("zero_layer_drained_streams_cut_total") == 2


async def test_a_draining_worker_still_answers_and_says_so(live: Any) -> None:
    before = await live.http.post("/v1/messages", json=BODY)
    assert "connection" not in before.headers
    live.lifecycle.begin_drain()
    after = await live.http.post("/v1/messages", json=BODY)
    assert after.status_code == 200
    assert after.headers["connection"] == "close"
    missing = await live.http.get("/nowhere")
    assert missing.headers["connection"] == "close"


async def test_idle_connections_are_closed_only_once_they_are_old(live: Any) -> None:
    assert (await live.http.get("/v1/models")).status_code == 200
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    await live.until(lambda: len(live.server.server_state.connections) == 2)
    live.server.close_idle(60)
    assert (await live.http.get("/v1/models")).status_code == 200
    live.server.close_idle(0)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    await live.until(lambda: not live.server.server_state.connections)
    writer.close()
    await writer.wait_closed()


async def test_a_stream_that_began_before_the_drain_leaves_its_connection_usable(held: Any) -> None:
    async with held.http.stream("POST", "/v1/messages", json={**BODY, "stream": True}) as response:
        assert "connection" not in response.headers
        held.server.close_idle(0)
        held.engine.gate.set()
        assert "message_stop" in (await response.aread()).decode()
    held.server.close_idle(60)
    assert len(held.server.server_state.connections) == 1
    assert (await held.http.get("/v1/models")).status_code == 200


async def test_every_answer_names_revision_and_fingerprint(start: Any, engine: Any) -> None:
    live = await start(engine, revision="0a1b2c3d4e")
    for response in (await live.http.post("/v1/messages", json=BODY), await live.http.get("/nowhere")):
        assert response.headers["x-zero-layer-revision"] == "0a1b2c3d4e"
        assert response.headers["x-zero-layer-fingerprint"] == "zl-fake-1"
        assert response.headers["request-id"] == response.headers["x-request-id"]


async def test_the_log_holds_no_prompt_no_answer_and_no_key(
    live: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    body = {**BODY, "messages": [{"role": "user", "content": "my secret"}]}
    await live.http.post("/v1/messages?secret=1", json=body, headers={"x-api-key": "sk-secret"})
    await live.http.post("/v1/messages", json={**body, "bogus": "secret"})
    await live.http.get("/v1/secret")
    ours = [vars(record) for record in caplog.records if record.name.startswith("zerolayer_worker")]
    assert len(ours) == 3
    assert "secret" not in str(ours)
    assert "Hello" not in str(ours)
