"""The Messages API through the real SDK over a real socket."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import Failed, FinishReason, OverloadedError, PromptTooLongError, TextDelta
from zerolayer_worker.server.auth import KeyRing
from zerolayer_worker.server.intent_policy import IntentPolicy

USER = [{"role": "user", "content": "hi there"}]


@pytest.fixture
async def client(live: Any) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=live.url, api_key="any", max_retries=0) as client:
        yield client


def ask(client: AsyncAnthropic, **changes: Any) -> Any:
    return client.messages.create(**{"model": "fake-model", "max_tokens": 20, "messages": USER, **changes})


async def test_a_whole_answer_has_text_usage_and_a_request_id(client: AsyncAnthropic, live: Any) -> None:
    message = await ask(client)
    assert message.content[0].text == "Hello world!"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (3, 3)
    assert (message.stop_reason, message.stop_sequence, message.model) == ("end_turn", None, "fake-model")
    assert message._request_id.startswith("req_")
    assert message.id == "msg_" + message._request_id.removeprefix("req_")
    assert live.metric("zero_layer_output_tokens_total") == 3
    assert live.metric("zero_layer_prompt_tokens_total") == 3
    assert live.metric("zero_layer_request_duration_seconds_count", route="/v1/messages") == 1


async def test_a_streamed_answer_is_the_same_message(client: AsyncAnthropic) -> None:
    async with client.messages.stream(model="fake-model", max_tokens=20, messages=USER) as stream:
        texts = [text async for text in stream.text_stream]
        message = await stream.get_final_message()
    assert texts == ["Hello", " world", "!"]
    whole = await ask(client)
    assert message.content[0].text == whole.content[0].text
    assert message.usage.output_tokens == whole.usage.output_tokens
    assert message.stop_reason == whole.stop_reason


async def test_the_stream_has_the_events_in_the_documented_order(live: Any) -> None:
    body = {"model": "fake-model", "max_tokens": 20, "messages": USER, "stream": True}
    response = await live.http.post("/v1/messages", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in response.text.strip().split("\n\n")]
    names = [event[0].removeprefix("event: ") for event in events]
    assert names == [
        "message_start",
        "content_block_start",
        "ping",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    for name, event in zip(names, events, strict=True):
        assert json.loads(event[1].removeprefix("data: "))["type"] == name


@pytest.mark.parametrize(
    ("finish", "stop_sequence", "reason"),
    [
        (FinishReason.END_OF_SEQUENCE, None, "end_turn"),
        (FinishReason.LENGTH, None, "max_tokens"),
        (FinishReason.STOP_SEQUENCE, "###", "stop_sequence"),
    ],
)
async def test_stop_reasons(
    client: AsyncAnthropic, live: Any, finish: FinishReason, stop_sequence: str | None, reason: str
) -> None:
    live.engine.finish, live.engine.stop_sequence = finish, stop_sequence
    message = await ask(client, stop_sequences=["###", "###", "end"])
    assert (message.stop_reason, message.stop_sequence) == (reason, stop_sequence)
    assert live.engine.requests[0].stop_sequences == ("###", "end")
    async with client.messages.stream(model="fake-model", max_tokens=20, messages=USER) as stream:
        streamed = await stream.get_final_message()
    assert (streamed.stop_reason, streamed.stop_sequence) == (reason, stop_sequence)


async def test_an_empty_answer_still_has_a_text_block(client: AsyncAnthropic, live: Any) -> None:
    live.engine.events = []
    message = await ask(client)
    assert message.content[0].text == ""


async def test_fields_that_change_no_answer_are_accepted(client: AsyncAnthropic, live: Any) -> None:
    await ask(
        client,
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        messages=[
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
            }
        ],
        metadata={"user_id": "u"},
        service_tier="auto",
        thinking={"type": "disabled"},
        extra_headers={"anthropic-version": "2023-06-01", "anthropic-beta": "prompt-caching-2024-07-31"},
    )
    assert live.engine.encoder.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]


async def test_count_tokens_counts_what_create_would_use(client: AsyncAnthropic) -> None:
    prompt: dict[str, Any] = {"model": "fake-model", "system": "Be brief.", "messages": USER}
    counted = await client.messages.count_tokens(**prompt)
    message = await client.messages.create(max_tokens=5, **prompt)
    assert counted.input_tokens == message.usage.input_tokens == 5


async def test_models_have_the_shape_of_this_api(client: AsyncAnthropic) -> None:
    models = [model async for model in client.models.list()]
    assert [(model.id, model.type, model.max_input_tokens) for model in models] == [
        ("fake-model", "model", 200)
    ]
    assert (await client.models.retrieve("fake-model")).created_at.year == 2023
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("other")


async def test_an_unknown_model_is_not_found_and_says_what_is_served(client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match=r"other.*Served models: fake-model") as caught:
        await ask(client, model="other")
    assert caught.value.type == "not_found_error"
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.count_tokens(model="other", messages=USER)


IMAGE = [{"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}]
FAILED_CALL = [{"type": "tool_result", "tool_use_id": "t", "content": "no such city", "is_error": True}]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra_body": {"max_tokens": "5"}}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 10_000}, "max_tokens: 10000 > 197"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages.0.content.0.text"),
        ({"messages": [{"role": "user", "content": []}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages.0"),
        ({"messages": ["hi"]}, "messages.0"),
        ({"messages": [*USER, {"role": "assistant", "content": "So"}]}, "messages"),
        ({"messages": [{"role": "user", "content": IMAGE}]}, "image"),
        ({"messages": [{"role": "user", "content": FAILED_CALL}]}, "messages.0.content.0.is_error"),
        ({"messages": [{"role": "user", "content": "refuse me"}]}, "roles must alternate"),
        (
            {"messages": [{"role": "user", "content": "word " * 300}]},
            "messages: prompt is too long: 301 tokens",
        ),
        ({"system": IMAGE}, "system.0"),
        ({"system": 5}, "system"),
        ({"stop_sequences": [""]}, "stop_sequences.0"),
        ({"stop_sequences": ["x"] * 17}, "stop_sequences"),
        ({"stop_sequences": ["x" * 257]}, "stop_sequences.0"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
        ({"tools": [{"name": "f", "input_schema": {}}]}, "tools"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"extra_body": {"temperature": 1.5}}, "temperature"),
        ({"extra_body": {"temperature": -1}}, "temperature"),
        ({"extra_body": {"temperature": "hot"}}, "temperature"),
        ({"extra_body": {"top_p": 0}}, "top_p"),
        ({"extra_body": {"top_k": -1}}, "top_k"),
        ({"extra_body": {"favourite_colour": "blue"}}, "favourite_colour: Extra inputs are not permitted"),
        ({"extra_body": {"intent": "creative"}}, "intent"),
    ],
)
async def test_bad_requests_name_the_field(
    client: AsyncAnthropic, live: Any, changes: Any, named: str
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(client, **changes)
    assert caught.value.type == "invalid_request_error"
    assert named in str(caught.value.api_message)
    assert caught.value.request_id
    assert live.engine.requests == []


async def test_classic_sampling_reaches_the_engine(client: AsyncAnthropic, live: Any) -> None:
    response = await client.messages.with_raw_response.create(
        model="fake-model",
        max_tokens=7,
        messages=USER,
        extra_body={"temperature": 0, "top_p": 0.9, "top_k": 5},
    )
    request = live.engine.requests[0]
    sampling = request.sampling
    assert (sampling.intent, sampling.temperature, sampling.top_p, sampling.top_k) == (None, 0.0, 0.9, 5)
    assert request.max_tokens == 7
    assert "x-anthropic-layer-zero" not in response.headers


async def test_zero_layer_mode_is_named_in_the_response(client: AsyncAnthropic, live: Any) -> None:
    response = await client.messages.with_raw_response.create(
        model="fake-model",
        max_tokens=7,
        messages=USER,
        extra_body={"temperature": 0},
        extra_headers={"anthropic-sampling-intent": "deterministic"},
    )
    assert response.headers["x-anthropic-layer-zero"] == "true"
    assert response.headers["x-anthropic-sampling-intent"] == "deterministic"
    assert response.headers["x-zero-layer-fingerprint"] == "zl-fake-1"
    assert live.engine.requests[0].sampling.intent == "deterministic"
    assert live.metric("zero_layer_intent_requests_total", intent="deterministic") == 1


async def test_a_beta_asks_for_the_pools_default_intent(
    start: Callable[..., Awaitable[Any]], engine: Any
) -> None:
    live = await start(engine, policy=IntentPolicy(Intent.DETERMINISTIC))
    async with AsyncAnthropic(base_url=live.url, api_key="any", max_retries=0) as client:
        response = await client.beta.messages.with_raw_response.create(
            model="fake-model", max_tokens=7, messages=USER, betas=["zero-layer-2024"]
        )
    assert response.headers["x-anthropic-sampling-intent"] == "deterministic"
    assert live.engine.requests[0].sampling.intent == "deterministic"


async def test_sampling_parameters_are_refused_in_zero_layer_mode(client: AsyncAnthropic) -> None:
    for extra in ({"temperature": 0.5}, {"temperature": 1.5}, {"top_p": 1.0}, {"top_k": 0}):
        with pytest.raises(
            anthropic.BadRequestError, match="temperature is deprecated in zero-layer mode"
        ) as caught:
            await ask(client, extra_body=extra, extra_headers={"anthropic-sampling-intent": "creative"})
        assert next(iter(extra)) in str(caught.value.api_message)
        assert caught.value.response.headers["x-anthropic-layer-zero"] == "true"


async def test_the_look_alike_header_is_refused_with_the_right_name(client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"send anthropic-sampling-intent instead"):
        await ask(client, extra_headers={"x-anthropic-sampling-intent": "creative"})


async def test_logprobs_only_when_asked(client: AsyncAnthropic, live: Any) -> None:
    assert "logprobs" not in (await ask(client)).model_dump()
    asked = (await ask(client, extra_body={"return_logprobs": True})).model_dump()
    assert [entry["logprob"] for entry in asked["logprobs"]["content"]] == [-0.5] * 3
    assert [request.sampling.logprobs for request in live.engine.requests] == [None, 0]
    body = {"model": "fake-model", "max_tokens": 9, "messages": USER, "stream": True}
    plain = await live.http.post("/v1/messages", json=body)
    streamed = await live.http.post("/v1/messages", json={**body, "return_logprobs": True})
    assert "logprob" not in plain.text
    assert streamed.text.count('"logprobs"') == 3


async def test_overload_is_a_rate_limit_error_that_names_zero_layer(
    client: AsyncAnthropic, live: Any
) -> None:
    live.engine.refusal = OverloadedError("64 requests wait", retry_after=7)
    with pytest.raises(anthropic.RateLimitError, match="zero-layer") as caught:
        await ask(client)
    assert caught.value.response.headers["retry-after"] == "7"
    with pytest.raises(anthropic.RateLimitError):
        await ask(client, stream=True)
    assert live.metric("zero_layer_rejected_requests_total", reason="queue_full") == 2


async def test_what_the_engine_refuses_as_too_long_is_a_bad_request(
    client: AsyncAnthropic, live: Any
) -> None:
    live.engine.refusal = PromptTooLongError("does not fit")
    with pytest.raises(anthropic.BadRequestError, match="messages: does not fit"):
        await ask(client)


async def test_an_answer_that_fails_is_an_error_in_either_form(client: AsyncAnthropic, live: Any) -> None:
    live.engine.events = [Failed("the accelerator was lost")]
    with pytest.raises(anthropic.InternalServerError, match="accelerator"):
        await ask(client)
    with pytest.raises(anthropic.InternalServerError, match="accelerator"):
        await ask(client, stream=True)
    live.engine.events = [TextDelta("Hello", (1,)), Failed("the accelerator was lost")]
    with pytest.raises(anthropic.APIStatusError, match="accelerator"):
        async with client.messages.stream(model="fake-model", max_tokens=20, messages=USER) as stream:
            await stream.get_final_message()


async def test_a_fault_of_the_engine_is_a_500_without_its_details(
    client: AsyncAnthropic, live: Any, caplog: pytest.LogCaptureFixture
) -> None:
    live.engine.refusal = RuntimeError("secret detail")
    with pytest.raises(anthropic.InternalServerError) as caught:
        await ask(client)
    assert "secret detail" not in str(caught.value)
    assert caught.value.request_id
    assert "secret detail" in caplog.text


async def test_a_key_is_needed_where_keys_are_configured(
    start: Callable[..., Awaitable[Any]], engine: Any, tmp_path: Any
) -> None:
    (tmp_path / "alice").write_text("sk-alice\n")
    live = await start(engine, keys=KeyRing(tmp_path))
    async with AsyncAnthropic(base_url=live.url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await ask(client)
        assert caught.value.type == "authentication_error"
        with pytest.raises(anthropic.AuthenticationError):
            await client.models.list()
    async with AsyncAnthropic(base_url=live.url, api_key="sk-alice", max_retries=0) as client:
        assert (await ask(client)).content[0].text == "Hello world!"
