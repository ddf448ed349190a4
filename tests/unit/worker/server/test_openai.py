"""The OpenAI API through the real SDK over a real socket."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from zerolayer_worker.engine.api import (
    Failed,
    FinishReason,
    IntentUnavailableError,
    OverloadedError,
    TextDelta,
)

USER = [{"role": "user", "content": "hi there"}]


@pytest.fixture
async def client(live: Any) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{live.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def chat(client: AsyncOpenAI, **changes: Any) -> Any:
    return client.chat.completions.create(**{"model": "fake-model", "messages": USER, **changes})


async def test_a_whole_answer(client: AsyncOpenAI) -> None:
    completion = await chat(client)
    choice = completion.choices[0]
    assert (choice.message.role, choice.message.content) == ("assistant", "Hello world!")
    assert (choice.finish_reason, choice.logprobs) == ("stop", None)
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (3, 3, 6)
    assert completion.system_fingerprint == "zl-fake-1"
    assert completion._request_id.startswith("req_")


async def test_a_stream_begins_with_the_role_and_ends_with_a_reason(client: AsyncOpenAI) -> None:
    chunks = [chunk async for chunk in await chat(client, stream=True)]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello world!"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * 4 + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


async def test_usage_of_a_stream_comes_in_a_chunk_of_its_own_when_asked_for(client: AsyncOpenAI) -> None:
    stream = await chat(client, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 6
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_the_stream_ends_with_done(live: Any) -> None:
    body = {"model": "fake-model", "messages": USER, "stream": True}
    response = await live.http.post("/v1/chat/completions", json=body)
    assert response.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        (FinishReason.END_OF_SEQUENCE, "stop"),
        (FinishReason.STOP_SEQUENCE, "stop"),
        (FinishReason.LENGTH, "length"),
    ],
)
async def test_finish_reasons(client: AsyncOpenAI, live: Any, finish: FinishReason, reason: str) -> None:
    live.engine.finish = finish
    assert (await chat(client, stop="###")).choices[0].finish_reason == reason
    assert live.engine.requests[0].stop_sequences == ("###",)


async def test_sampling_and_length_reach_the_engine(client: AsyncOpenAI, live: Any) -> None:
    await chat(
        client,
        temperature=1.5,
        top_p=0.9,
        seed=7,
        max_completion_tokens=9,
        logprobs=True,
        top_logprobs=2,
        presence_penalty=-0.5,
        frequency_penalty=0.25,
        extra_body={"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1},
    )
    request = live.engine.requests[0]
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (1.5, 0.9, 40, 0.05)
    assert (sampling.seed, sampling.logprobs, request.max_tokens) == (7, 2, 9)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (-0.5, 0.25)
    assert sampling.repetition_penalty == 1.1


async def test_without_a_length_the_answer_may_fill_the_context(client: AsyncOpenAI, live: Any) -> None:
    await chat(client)
    assert live.engine.requests[0].max_tokens == 200 - 3


async def test_logprobs_are_reported_per_token(client: AsyncOpenAI) -> None:
    whole = (await chat(client, logprobs=True, top_logprobs=2)).choices[0].logprobs.content
    assert [entry.token for entry in whole] == ["Hello", " world", "!"]
    assert [[top.token for top in entry.top_logprobs] for entry in whole] == [
        [token, "other"] for token in ("Hello", " world", "!")
    ]
    stream = await chat(client, logprobs=True, stream=True)
    entries = [c.choices[0].logprobs.content for c in [c async for c in stream] if c.choices[0].logprobs]
    assert [entry.token for part in entries for entry in part] == ["Hello", " world", "!"]


async def test_the_intent_can_be_named_in_the_body(client: AsyncOpenAI, live: Any) -> None:
    response = await client.chat.completions.with_raw_response.create(
        model="fake-model", messages=USER, temperature=0, seed=3, extra_body={"intent": "creative"}
    )
    assert response.headers["x-anthropic-layer-zero"] == "true"
    assert response.headers["x-anthropic-sampling-intent"] == "creative"
    assert (live.engine.requests[0].sampling.intent, live.engine.requests[0].sampling.seed) == ("creative", 3)


async def test_in_zero_layer_mode_logprobs_need_their_own_field(client: AsyncOpenAI, live: Any) -> None:
    plain = await chat(client, logprobs=True, extra_body={"intent": "balanced"})
    assert plain.choices[0].logprobs is None
    asked = await chat(client, extra_body={"intent": "balanced", "return_logprobs": True})
    assert len(asked.choices[0].logprobs.content) == 3
    assert [request.sampling.logprobs for request in live.engine.requests] == [None, 0]


async def test_sampling_parameters_are_refused_in_zero_layer_mode(client: AsyncOpenAI) -> None:
    for changes in ({"temperature": 1.5}, {"top_p": 0.5}, {"frequency_penalty": 0.5}):
        with pytest.raises(
            openai.BadRequestError, match="temperature is deprecated in zero-layer mode"
        ) as caught:
            await chat(client, **changes, extra_headers={"anthropic-sampling-intent": "creative"})
        assert caught.value.param == next(iter(changes))
    with pytest.raises(openai.BadRequestError, match="min_p"):
        await chat(client, extra_body={"intent": "creative", "min_p": 0.1})


async def test_fields_that_change_no_answer_are_accepted(client: AsyncOpenAI, live: Any) -> None:
    await chat(
        client,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "!"}]},
        ],
        user="u",
        metadata={"k": "v"},
        n=1,
        logit_bias={},
        presence_penalty=0,
        frequency_penalty=0.0,
        response_format={"type": "text"},
        store=False,
        service_tier="auto",
        modalities=["text"],
    )
    assert live.engine.encoder.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi!"},
    ]


async def test_an_unknown_model_is_not_found(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=r"Served models: fake-model") as caught:
        await chat(client, model="other")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError):
        await client.completions.create(model="other", prompt="x")
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("other")


async def test_models_have_the_shape_of_this_api(client: AsyncOpenAI) -> None:
    models = [model async for model in client.models.list()]
    assert [(model.id, model.object, model.created) for model in models] == [
        ("fake-model", "model", 1_700_000_000)
    ]
    assert (await client.models.retrieve("fake-model")).owned_by == "zerolayer"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"n": 2}, "n"),
        ({"logit_bias": {"50256": -100}}, "logit_bias"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": -2.5}, "frequency_penalty"),
        ({"extra_body": {"repetition_penalty": 0}}, "repetition_penalty"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"store": True}, "store"),
        ({"temperature": 2.5}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
        ({"max_completion_tokens": 4000}, "max_completion_tokens"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": ""}, "stop.0"),
        ({"seed": 2**70}, "seed"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}, "messages.0.name"),
        ({"messages": [{"role": "system", "content": "x", "name": "Ann"}, *USER]}, "messages.0.name"),
        (
            {"messages": [*USER, {"role": "assistant", "content": "x", "name": "Ann"}, *USER]},
            "messages.1.name",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0"),
        ({"messages": [*USER, {"role": "assistant", "content": "So"}]}, "messages"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, "messages.0"),
        ({"extra_body": {"favourite_colour": "blue"}}, "favourite_colour"),
        ({"extra_body": {"intent": "wild"}}, "intent"),
        (
            {
                "extra_body": {"intent": "creative"},
                "extra_headers": {"anthropic-sampling-intent": "balanced"},
            },
            "intent",
        ),
        ({"extra_headers": {"anthropic-sampling-intent": "wild"}}, "anthropic-sampling-intent"),
        ({"extra_headers": {"x-anthropic-sampling-intent": "creative"}}, "x-anthropic-sampling-intent"),
    ],
)
async def test_bad_requests_name_the_field(client: AsyncOpenAI, live: Any, changes: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await chat(client, **changes)
    assert caught.value.param == param
    assert param in caught.value.message
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id
    assert live.engine.requests == []


async def test_an_intent_this_worker_cannot_keep_is_unavailable(client: AsyncOpenAI, live: Any) -> None:
    live.engine.refusal = IntentUnavailableError("deterministic failed the self-test: rows differ")
    with pytest.raises(openai.InternalServerError, match="rows differ") as caught:
        await chat(client, extra_body={"intent": "deterministic"})
    assert (caught.value.status_code, caught.value.code) == (503, "intent_unavailable")


async def test_overload_is_a_rate_limit_error_that_names_zero_layer(client: AsyncOpenAI, live: Any) -> None:
    live.engine.refusal = OverloadedError("64 requests wait", retry_after=7)
    with pytest.raises(openai.RateLimitError, match="zero-layer") as caught:
        await chat(client)
    assert caught.value.response.headers["retry-after"] == "7"


async def test_a_stream_that_fails_raises(client: AsyncOpenAI, live: Any) -> None:
    live.engine.events = [TextDelta("Hello", (1,)), Failed("the accelerator was lost")]
    with pytest.raises(openai.APIError, match="accelerator"):
        [chunk async for chunk in await chat(client, stream=True)]


async def test_plain_completions(client: AsyncOpenAI, live: Any) -> None:
    completion = await client.completions.create(model="fake-model", prompt="one two", logprobs=1)
    choice = completion.choices[0]
    assert (choice.text, choice.finish_reason) == ("Hello world!", "stop")
    assert choice.logprobs.tokens == ["Hello", " world", "!"]
    assert choice.logprobs.text_offset == [0, 5, 11]
    assert choice.logprobs.top_logprobs[0] == {"Hello": -0.5, "other": -1.5}
    assert completion.usage.prompt_tokens == 2
    assert live.engine.requests[0].max_tokens == 16
    stream = await client.completions.create(model="fake-model", prompt=[5, 6, 7], stream=True, max_tokens=4)
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].text for chunk in chunks) == "Hello world!"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert live.engine.requests[1].prompt_ids == (5, 6, 7)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [1, "x"]}, "prompt"),
        ({"prompt": [5000]}, "prompt"),
        ({"echo": True}, "echo"),
        ({"best_of": 2}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"prompt": "word " * 300}, "prompt"),
    ],
)
async def test_bad_completions_name_the_field(client: AsyncOpenAI, changes: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.completions.create(**{"model": "fake-model", "prompt": "x", **changes})
    assert caught.value.param == param


async def test_tools_are_rendered_where_the_template_has_them(live: Any, client: AsyncOpenAI) -> None:
    live.engine.info = replace(live.engine.info, supports_tools=True)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"x": 1})}}
    await chat(
        client,
        messages=[
            *USER,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
        ],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    )
    encoder = live.engine.encoder
    assert encoder.messages[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"x": 1}}
    assert encoder.messages[2] == {"role": "tool", "content": "2", "tool_call_id": "c"}
    assert encoder.tools[0]["function"]["name"] == "f"
