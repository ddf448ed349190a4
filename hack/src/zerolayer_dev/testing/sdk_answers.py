"""Asks through the SDKs, streamed and not, and compares every object with the SDKs' own types.

What the SDKs parse they build without looking at it; a wrong field would be found out by a user.
"""

# ruff: noqa: S101 - what several tests assert

from collections.abc import Iterator
from typing import Any, Final

from anthropic import AsyncAnthropic
from pydantic import BaseModel

from zerolayer_dev.testing.generated_requests import Generated

OURS: Final = {"logprobs"}
"""What an answer of the Messages API has beyond the SDK's types, where a request asks for it."""

_ENDS: Final = ("message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop")


def strict(found: Any, *ours: str) -> None:
    """Looks at all fields and types of an object; those of ours may be there too."""
    content: dict[str, Any] = found.to_dict()
    if content.get("object") == "text_completion" and content.get("choices"):
        # The SDK has one type for whole and streamed completions; all chunks but the last say null.
        content["choices"][0]["finish_reason"] = content["choices"][0]["finish_reason"] or "stop"
    type(found).model_validate(content, strict=True)
    assert set(unknown(found)) <= set(ours), found


def unknown(value: Any) -> Iterator[str]:
    """Fields that the SDK's types do not have, however deep."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name))
    elif isinstance(value, list):
        for each in value:
            yield from unknown(each)


async def messages(claude: AsyncAnthropic, model: str, asked: Generated) -> tuple[Any, Any]:
    """What a request to the Messages API gave, streamed and whole: text, reason, stop sequence, tokens."""
    create: Any = claude.messages.create
    whole = await create(model=model, **asked.arguments)
    strict(whole, *OURS)
    stream = await create(model=model, **asked.arguments, stream=True)
    events: list[Any] = [event async for event in stream]
    for event in events:
        strict(event, *OURS)
    start, opened, *deltas, closed, ending, stop = events
    assert tuple(event.type for event in (start, opened, closed, ending, stop)) == _ENDS
    assert {event.type for event in deltas} <= {"content_block_delta"}
    assert {event.index for event in (opened, *deltas, closed)} == {0}
    assert (start.message.content, start.message.stop_reason) == ([], None)
    assert start.message.usage.input_tokens >= ending.usage.input_tokens
    ask = asked.arguments["extra_body"]
    assert all(bool(getattr(delta, "logprobs", None)) == bool(ask.get("return_logprobs")) for delta in deltas)
    text = "".join(delta.delta.text for delta in deltas)
    usage = ending.usage
    prompt = usage.input_tokens + usage.cache_read_input_tokens
    told = whole.usage
    assert prompt == told.input_tokens + told.cache_read_input_tokens
    return (
        (text, ending.delta.stop_reason, ending.delta.stop_sequence, usage.output_tokens),
        (whole.content[0].text, whole.stop_reason, whole.stop_sequence, told.output_tokens),
    )


async def openai(create: Any, model: str, asked: Generated) -> tuple[Any, Any]:
    """What a request to one of OpenAI's routes gave, streamed and whole: text, reason, tokens."""
    whole = await create(model=model, **asked.arguments)
    strict(whole)
    stream = await create(model=model, **asked.arguments, stream=True, stream_options={"include_usage": True})
    chunks: list[Any] = [chunk async for chunk in stream]
    for chunk in chunks:
        strict(chunk)
    *told, last = chunks
    assert last.choices == []
    assert all(chunk.usage is None and len(chunk.choices) == 1 for chunk in told)
    assert len({(chunk.id, chunk.model, chunk.created, chunk.system_fingerprint) for chunk in chunks}) == 1
    reasons = [chunk.choices[0].finish_reason for chunk in told]
    assert reasons[-1] is not None
    assert set(reasons[:-1]) <= {None}
    usage = last.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens == whole.usage.prompt_tokens
    if asked.route == "chat":
        assert [chunk.choices[0].delta.role for chunk in told] == ["assistant", *[None] * (len(told) - 1)]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in told)
        answer = whole.choices[0].message.content
        scored = [entry for chunk in told for entry in _content(chunk.choices[0])]
        assert len(scored) == len(_content(whole.choices[0])) or not asked.repeats
    else:
        text = "".join(chunk.choices[0].text for chunk in told)
        answer = whole.choices[0].text
    return (
        (text, reasons[-1], usage.completion_tokens),
        (answer, whole.choices[0].finish_reason, whole.usage.completion_tokens),
    )


def _content(choice: Any) -> list[Any]:
    return (choice.logprobs.content if choice.logprobs else None) or []
