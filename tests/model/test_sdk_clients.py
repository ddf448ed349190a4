"""The official SDKs, unmodified, against a real worker with real weights."""

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

pytestmark = [pytest.mark.promise("sdk-clients"), pytest.mark.timeout(600)]

USER = [{"role": "user", "content": "Name three colours of the rainbow."}]
COUNT = [{"role": "user", "content": "Count from one to ten in digits, separated by commas."}]
INTENT = "anthropic-sampling-intent"


@pytest.fixture(scope="module")
def claude(worker_process: Any) -> Iterator[Anthropic]:
    with Anthropic(base_url=worker_process.url, api_key="any", max_retries=0, timeout=300) as client:
        yield client


@pytest.fixture(scope="module")
def gpt(worker_process: Any) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{worker_process.url}/v1", api_key="any", max_retries=0, timeout=300) as client:
        yield client


@pytest.fixture(scope="module")
def model(worker_process: Any) -> str:
    return str(worker_process.model)


def test_anthropic_streamed_and_whole_answers_agree(
    claude: Anthropic, model: str, figures: Callable[..., None]
) -> None:
    """The anthropic SDK gets the same deterministic answer streamed and whole, with usage and reason."""
    asked: dict[str, Any] = {"model": model, "max_tokens": 24, "messages": USER}
    headers = {INTENT: "deterministic"}
    whole = claude.messages.with_raw_response.create(**asked, extra_headers=headers)
    message = whole.parse()
    with claude.messages.stream(**asked, extra_headers=headers) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert message.content[0].text == text == final.content[0].text
    assert text.strip()
    assert message.usage.input_tokens == final.usage.input_tokens > 10
    assert 0 < message.usage.output_tokens == final.usage.output_tokens <= 24
    assert message.stop_reason == final.stop_reason in ("end_turn", "max_tokens")
    assert whole.headers["request-id"] == message._request_id
    assert whole.headers["x-anthropic-layer-zero"] == "true"
    assert whole.headers[f"x-{INTENT}"] == "deterministic"
    assert whole.headers["x-zero-layer-fingerprint"]
    counted = claude.messages.count_tokens(model=model, messages=USER)
    assert counted.input_tokens == message.usage.input_tokens
    figures(sdk=f"anthropic {anthropic.__version__}", output_tokens=message.usage.output_tokens)


def test_openai_streamed_and_whole_answers_agree(
    gpt: OpenAI, model: str, figures: Callable[..., None]
) -> None:
    """The openai SDK gets the same deterministic answer streamed and whole, with usage and reason."""
    asked: dict[str, Any] = {
        "model": model,
        "max_completion_tokens": 24,
        "messages": USER,
        "extra_body": {"intent": "deterministic"},
    }
    whole = gpt.chat.completions.create(**asked)
    chunks = list(gpt.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert whole.choices[0].message.content == streamed
    assert chunks[-1].usage == whole.usage
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons[-1] == whole.choices[0].finish_reason in ("stop", "length")
    assert whole.system_fingerprint == chunks[0].system_fingerprint
    assert whole._request_id
    figures(sdk=f"openai {openai.__version__}", output_tokens=whole.usage.completion_tokens)


def test_both_protocols_reach_the_same_answer(claude: Anthropic, gpt: OpenAI, model: str) -> None:
    """One deterministic prompt gets one answer, whichever protocol asks."""
    message = claude.messages.create(
        model=model, max_tokens=16, messages=USER, extra_headers={INTENT: "deterministic"}
    )
    completion = gpt.chat.completions.create(
        model=model, max_tokens=16, messages=USER, extra_headers={INTENT: "deterministic"}
    )
    assert message.content[0].text == completion.choices[0].message.content


def test_stop_sequences(claude: Anthropic, gpt: OpenAI, model: str) -> None:
    """A stop sequence ends the answer before it and is named; streamed text never shows a part of it."""
    headers = {INTENT: "deterministic"}
    full = claude.messages.create(model=model, max_tokens=24, messages=COUNT, extra_headers=headers)
    text = full.content[0].text
    stop = text.strip()[4:7]
    assert stop in text
    asked: dict[str, Any] = {"model": model, "max_tokens": 24, "messages": COUNT, "extra_headers": headers}
    cut = claude.messages.create(**asked, stop_sequences=[stop])
    assert (cut.stop_reason, cut.stop_sequence) == ("stop_sequence", stop)
    assert cut.content[0].text == text[: text.index(stop)]
    with claude.messages.stream(**asked, stop_sequences=[stop]) as stream:
        assert "".join(stream.text_stream) == cut.content[0].text
        assert stream.get_final_message().stop_sequence == stop
    other = gpt.chat.completions.create(**asked, stop=[stop])
    assert (other.choices[0].message.content, other.choices[0].finish_reason) == (cut.content[0].text, "stop")


def test_temperature_zero_and_one_and_a_half(claude: Anthropic, gpt: OpenAI, model: str) -> None:
    """Classic requests take each API's own temperatures; beside an intent only 0 passes, ignored."""
    answers = {
        gpt.chat.completions.create(model=model, messages=USER, max_tokens=8, temperature=0)
        .choices[0]
        .message.content
        for _ in range(2)
    }
    assert len(answers) == 1
    hot = gpt.chat.completions.create(model=model, messages=USER, max_tokens=8, temperature=1.5, seed=1)
    assert hot.choices[0].message.content
    classic = claude.messages.with_raw_response.create(
        model=model, messages=USER, max_tokens=8, extra_body={"temperature": 0}
    )
    assert classic.parse().content[0].text in answers
    assert "x-anthropic-layer-zero" not in classic.headers
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        claude.messages.create(model=model, messages=USER, max_tokens=8, extra_body={"temperature": 1.5})
    for client_error, ask in (
        (anthropic.BadRequestError, claude.messages.create),
        (openai.BadRequestError, gpt.chat.completions.create),
    ):
        zero_layer: dict[str, Any] = {"model": model, "messages": USER, "max_tokens": 4}
        zero_layer["extra_headers"] = {INTENT: "balanced"}
        assert ask(**zero_layer, extra_body={"temperature": 0})
        with pytest.raises(client_error, match="temperature is deprecated in zero-layer mode"):
            ask(**zero_layer, extra_body={"temperature": 1.5})


def test_logprobs_only_when_asked(gpt: OpenAI, model: str) -> None:
    """Log-probabilities are absent unless asked for, and belong to the chosen tokens."""
    asked: dict[str, Any] = {"model": model, "messages": USER, "max_tokens": 6, "temperature": 0}
    assert gpt.chat.completions.create(**asked).choices[0].logprobs is None
    choice = gpt.chat.completions.create(**asked, logprobs=True, top_logprobs=3).choices[0]
    assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content
    for entry in choice.logprobs.content:
        assert entry.logprob <= 0
        assert entry.top_logprobs[0].token == entry.token
        assert len(entry.top_logprobs) == 3
    quiet = gpt.chat.completions.create(
        model=model, messages=USER, max_tokens=4, logprobs=True, extra_body={"intent": "deterministic"}
    )
    assert quiet.choices[0].logprobs is None


def test_a_seed_reproduces_a_creative_answer(gpt: OpenAI, model: str) -> None:
    """The same seed gives the same creative answer, another seed another one."""
    answers = [
        gpt.chat.completions.create(
            model=model, messages=USER, max_tokens=16, seed=seed, extra_body={"intent": "creative"}
        )
        .choices[0]
        .message.content
        for seed in (1, 1, 2)
    ]
    assert answers[0] == answers[1] != answers[2]


def test_the_look_alike_header_is_a_bad_request(claude: Anthropic, gpt: OpenAI, model: str) -> None:
    """The header with a leading x-, which elsewhere selects nothing in silence, is refused by name."""
    asked: dict[str, Any] = {"model": model, "messages": USER, "max_tokens": 4}
    asked["extra_headers"] = {f"x-{INTENT}": "creative"}
    with pytest.raises(anthropic.BadRequestError, match=f"send {INTENT} instead"):
        claude.messages.create(**asked)
    with pytest.raises(openai.BadRequestError, match=f"send {INTENT} instead"):
        gpt.chat.completions.create(**asked)


def test_an_unknown_model_is_not_found(claude: Anthropic, gpt: OpenAI, model: str) -> None:
    """A model that is not served raises NotFoundError with a list of what is; nothing falls back."""
    asked: dict[str, Any] = {"model": "claude-nonesuch", "messages": USER, "max_tokens": 4}
    with pytest.raises(anthropic.NotFoundError, match=model):
        claude.messages.create(**asked)
    with pytest.raises(openai.NotFoundError, match=model) as caught:
        gpt.chat.completions.create(**asked)
    assert caught.value.code == "model_not_found"
    assert [served.id for served in claude.models.list()] == [model]
    assert [served.id for served in gpt.models.list()] == [model]


def test_fields_that_are_not_built_are_refused_by_name(
    claude: Anthropic, gpt: OpenAI, model: str, figures: Callable[..., None]
) -> None:
    """What is not built is a BadRequestError that names the field, never ignored."""
    image = [{"type": "image", "source": {"type": "url", "url": "http://example.com/x.png"}}]
    tools = [{"name": "clock", "input_schema": {"type": "object"}}]
    messages_fields: dict[str, Any] = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": tools,
        "messages": [{"role": "user", "content": image}],
        "no_such_field": 1,
    }
    for field, value in messages_fields.items():
        body = {
            "model": model,
            "messages": USER,
            "max_tokens": 4,
            **({field: value} if field == "messages" else {}),
        }
        extra = {} if field == "messages" else {field: value}
        with pytest.raises(anthropic.BadRequestError, match=field):
            claude.messages.create(**body, extra_body=extra)
    openai_fields: dict[str, Any] = {
        "n": 2,
        "logit_bias": {"1": 5},
        "response_format": {"type": "json_object"},
        "frequency_penalty": 2.5,
        "tools": [{"type": "function", "function": {"name": "clock"}}],
        "no_such_field": 1,
    }
    for field, value in openai_fields.items():
        with pytest.raises(openai.BadRequestError, match=field) as caught:
            gpt.chat.completions.create(model=model, messages=USER, max_tokens=4, extra_body={field: value})
        assert caught.value.param == field
    figures(refused_fields=len(messages_fields) + len(openai_fields))


def test_a_prompt_beyond_the_context_is_a_bad_request(claude: Anthropic, gpt: OpenAI, model: str) -> None:
    """A prompt that does not fit is refused with its length in tokens."""
    long = [{"role": "user", "content": "word " * 10_000}]
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 10"):
        claude.messages.create(model=model, messages=long, max_tokens=4)
    with pytest.raises(openai.BadRequestError) as caught:
        gpt.chat.completions.create(model=model, messages=long, max_tokens=4)
    assert caught.value.code == "context_length_exceeded"
