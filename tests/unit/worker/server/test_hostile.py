"""Bounds on what a client may send, and the shapes of errors before any route is reached."""

import asyncio
import contextlib
import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from zerolayer_worker.server import limits
from zerolayer_worker.server.completions.schema import ChatRequest
from zerolayer_worker.server.messages.schema import MessagesRequest
from zerolayer_worker.server.validation import Blocks

MESSAGES = "/v1/messages"
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
POSTS = (MESSAGES, f"{MESSAGES}/count_tokens", CHAT, COMPLETIONS)


def message_of(response: httpx.Response) -> str:
    return str(response.json()["error"]["message"])


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "has no body"),
        (b"{", "not valid JSON"),
        (b"[]", "JSON object"),
        (b"null", "JSON object"),
        (b'{"model": NaN}', "not valid JSON"),
        (b'{"model": "\xff\xfe"}', "not valid JSON"),
        (b'{"model": "\\ud800"}', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"a":' * 40_000, "not valid JSON"),
        (b"{}", "Field required"),
    ],
)
async def test_bodies_that_cannot_be_read_are_bad_requests(
    live: Any, path: str, body: bytes, named: str
) -> None:
    response = await live.http.post(path, content=body)
    assert response.status_code == 400
    assert named in message_of(response)
    assert response.headers["request-id"].startswith("req_")


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_a_body_beyond_the_limit_is_refused_and_the_client_sees_why(live: Any, path: str) -> None:
    response = await live.http.post(path, content=b" " * (limits.MAX_BODY_BYTES + 1))
    assert response.status_code == 413
    assert str(limits.MAX_BODY_BYTES) in message_of(response)
    assert response.headers["connection"] == "close"


async def test_a_body_without_end_is_cut_off(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BODY_BYTES", 1000)
    monkeypatch.setattr(limits, "MAX_DISCARDED_BYTES", 100_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
    chunk = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"

    async def pour() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(chunk)
                await writer.drain()

    task = asyncio.create_task(pour())
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionError):
            assert b"413" in await reader.readline()
        await task if task.done() else None
        await live.until(lambda: not live.server.server_state.connections)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_body_that_does_not_arrive_is_a_timeout(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{")
    async with asyncio.timeout(30):
        answer = await reader.read()
    assert b" 408 " in answer
    assert b"timeout_error" in answer
    writer.close()
    await writer.wait_closed()


async def test_far_too_many_open_requests_are_refused_unread(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_IN_FLIGHT", 0)
    for path in POSTS:
        response = await live.http.post(path, content=b"never read")
        assert response.status_code == 429
        assert "zero-layer" in message_of(response)
        assert response.headers["retry-after"] == "1"
    assert live.metric("zero_layer_rejected_requests_total", reason="too_many_open") == len(POSTS)


async def test_compressed_bodies_are_refused(live: Any) -> None:
    response = await live.http.post(MESSAGES, content=b"xx", headers={"content-encoding": "gzip"})
    assert response.status_code == 415
    assert "content-encoding" in message_of(response)


async def test_headers_that_do_not_arrive_close_the_connection(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEADER_TIMEOUT_S", 0.05)
    for begun in (b"", b"POST /v1/messages HTTP/1.1\r\nhos"):
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
        writer.write(begun)
        async with asyncio.timeout(30):
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_headers_of_a_second_request_are_bounded_too(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEADER_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\nGET /v1/mod")
    async with asyncio.timeout(30):
        answer = await reader.read()
    assert answer.count(b"HTTP/1.1 200") == 1
    writer.close()
    await writer.wait_closed()


async def test_what_is_not_http_gets_a_json_error(live: Any) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    async with asyncio.timeout(30):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert b" 400 " in head
    assert json.loads(body)["error"]["type"] == "invalid_request_error"
    assert f"\r\nrequest-id: {json.loads(body)['request_id']}\r\n".encode() in head
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "kind"),
    [
        ("GET", MESSAGES, {}, 405, "messages"),
        ("DELETE", CHAT, {}, 405, "openai"),
        ("POST", "/v1/models", {"anthropic-version": "2023-06-01"}, 405, "messages"),
        ("POST", "/v1/messages/batches", {}, 404, "messages"),
        ("POST", "/v1/messages/", {}, 404, "messages"),
        ("POST", "/v1/embeddings", {}, 404, "openai"),
        ("GET", "/", {"x-api-key": "k"}, 404, "messages"),
        ("GET", "/", {}, 404, "openai"),
    ],
)
async def test_unknown_routes_and_methods_have_the_protocols_shape(
    live: Any, *, method: str, path: str, headers: dict[str, str], status: int, kind: str
) -> None:
    response = await live.http.request(method, path, headers=headers)
    body = response.json()
    assert response.status_code == status
    assert path in body["error"]["message"]
    if kind == "messages":
        assert body["type"] == "error"
        assert body["request_id"] == response.headers["request-id"]
    else:
        assert set(body["error"]) == {"message", "type", "param", "code"}
    if status == 405:
        assert response.headers["allow"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
known_fields = st.sampled_from(
    [
        *("model", "messages", "prompt", "system", "max_tokens", "max_completion_tokens", "stream", "stop"),
        *(
            "stop_sequences",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "repetition_penalty",
            "presence_penalty",
            "frequency_penalty",
            "seed",
            "intent",
            "n",
            "tools",
            "logprobs",
        ),
        *("top_logprobs", "return_logprobs", "stream_options", "tool_choice", "thinking", "metadata"),
        *("response_format", "logit_bias", "service_tier", "cache_control", "role", "content"),
    ]
)
turns = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool", "x"]), "content": json_values}
    )
    | json_values,
    max_size=4,
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just("fake-model") | json_values,
        "max_tokens": st.integers(-2, 300) | json_values,
        "messages": turns | json_values,
        "prompt": json_values,
        "stream": st.booleans() | json_values,
        "stop": json_values,
        "stop_sequences": json_values,
        "system": json_values,
    },
)
mixed = st.builds(
    lambda fixed, more: {**more, **fixed}, bodies, st.dictionaries(known_fields, json_values, max_size=4)
)


@pytest.mark.parametrize("path", POSTS)
async def test_no_json_body_is_a_fault_of_the_server(live: Any, path: str) -> None:
    """Whatever the body, the answer is a success or a client error in the protocol's shape."""
    seen: list[int] = []
    loop = asyncio.get_running_loop()

    @settings(max_examples=80, suppress_health_check=list(HealthCheck))
    @given(mixed)
    @example({"model": "fake-model", "max_tokens": 5, "messages": [{"role": "user", "content": "\x00"}]})
    @example({"model": "fake-model", "max_tokens": 10**400, "messages": [{"role": "user", "content": "x"}]})
    @example({"model": "fake-model", "prompt": [[1, 2], [3]], "max_tokens": 2})
    def probe(body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        response = asyncio.run_coroutine_threadsafe(live.http.post(path, content=content), loop).result(30)
        seen.append(response.status_code)
        assert response.status_code in (200, 400, 404), response.text
        if response.status_code != 200:
            assert message_of(response)

    await asyncio.to_thread(probe)
    assert len(seen) >= 80


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (MESSAGES, "messages", [{"role": "user", "content": [1] * 300_000}]),
        (MESSAGES, "system", [1] * 300_000),
        (MESSAGES, "tools", [1] * 300_000),
        (CHAT, "messages", [{"role": "user", "content": [1] * 300_000}]),
        (CHAT, "messages", [{"role": "user", "content": [1] * 3_000}] * 100),
        (CHAT, "tools", [1] * 300_000),
        (CHAT, "messages", [{"role": "user", "content": "x", **dict.fromkeys(map(str, range(90_000)), 1)}]),
    ],
)
async def test_of_many_faults_only_the_first_is_looked_at(
    live: Any, path: str, field: str, value: object
) -> None:
    """Collecting all of them would take the event loop, and with it probes and streams, many seconds."""
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}], field: value}
    content = json.dumps(body).encode()
    response = await live.http.post(path, content=content)
    assert response.status_code == 400
    assert message_of(response).startswith(field)
    model = MessagesRequest if path == MESSAGES else ChatRequest
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body, context=Blocks())
    assert caught.value.error_count() == 1


@pytest.mark.parametrize("path", POSTS)
async def test_too_much_structure_is_refused_before_anything_is_decoded(live: Any, path: str) -> None:
    """A body of some megabytes can hold a million objects, which take seconds to make and to validate."""
    blocks = b",".join([b'{"type":"text","text":"a"}'] * 250_000)
    response = await live.http.post(path, content=b'{"messages":[{"role":"user","content":[' + blocks)
    assert response.status_code == 413
    assert f"more than {limits.MAX_STRUCTURE} objects, lists and fields" in message_of(response)


TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        pytest.param(
            MESSAGES,
            {"messages": [{"role": "user", "content": [TEXT] * (limits.MAX_BLOCKS + 1)}]},
            "messages.0.content: ",
            id="one turn",
        ),
        pytest.param(
            MESSAGES,
            {"messages": [{"role": "user", "content": [TEXT] * (limits.MAX_BLOCKS // 10)}] * 11},
            "messages.10.content: ",
            id="many turns",
        ),
        pytest.param(
            MESSAGES,
            {
                "messages": [{"role": "user", "content": "a"}] * 2,
                "system": [TEXT] * (limits.MAX_BLOCKS - 1),
            },
            "system: ",
            id="with the system prompt",
        ),
        pytest.param(
            MESSAGES,
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "t",
                                "content": [TEXT] * limits.MAX_BLOCKS,
                            }
                        ],
                    }
                ]
            },
            "messages.0.content.0.content: ",
            id="a tool's result",
        ),
        pytest.param(
            CHAT,
            {"messages": [{"role": "user", "content": [TEXT] * (limits.MAX_BLOCKS // 10)}] * 11},
            "messages.10.content: ",
            id="chat",
        ),
    ],
)
async def test_the_blocks_of_a_request_are_bounded_together(
    live: Any, path: str, body: dict[str, Any], named: str
) -> None:
    response = await live.http.post(path, json={"model": "fake-model", "max_tokens": 5, **body})
    assert response.status_code == 400
    assert message_of(response).startswith(
        f"{named}a request should have at most {limits.MAX_BLOCKS} content"
    )


@pytest.mark.parametrize("path", POSTS)
async def test_an_object_has_few_fields(live: Any, path: str) -> None:
    response = await live.http.post(path, json=dict.fromkeys(map(str, range(90_000)), 1))
    assert response.status_code == 400
    assert message_of(response) == f"Input should have at most {limits.MAX_FIELDS} fields"


@pytest.mark.parametrize("path", POSTS)
async def test_a_text_that_no_context_holds_is_refused_by_field(live: Any, path: str) -> None:
    body: dict[str, Any] = {"model": "fake-model"}
    if path == COMPLETIONS:
        body["prompt"] = "endless!"
    else:
        body["messages"] = [{"role": "user", "content": "endless!"}]
    if path == MESSAGES:
        body["max_tokens"] = 5

    response = await live.http.post(path, json=body)

    assert response.status_code == 400
    assert "prompt is too long: 9 characters" in message_of(response)
