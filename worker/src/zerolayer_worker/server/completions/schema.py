"""Request bodies of the OpenAI API, and which of their fields are built."""

from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field, PlainValidator, StringConstraints, Tag

from zerolayer_worker.server import limits
from zerolayer_worker.server.validation import Strict, by, no_effect, not_built, refused, tagged, text_or_list


class TextPart(Strict):
    """Text of a message."""

    type: Literal["text"]
    text: str


_PART = tagged("type", ("text",), "a content part")
_PARTS = text_or_list("content parts")
_NAME = not_built(hint="say in content who speaks")

Parts = Annotated[list[Annotated[TextPart, _PART]], Field(fail_fast=True), _PARTS]


class SystemMessage(Strict):
    """Instructions."""

    role: Literal["system", "developer"]
    content: Parts
    name: Annotated[object, _NAME] = None


class UserMessage(Strict):
    """A turn of the user."""

    role: Literal["user"]
    content: Parts
    name: Annotated[object, _NAME] = None


class FunctionCall(Strict):
    """Name and JSON arguments of a call."""

    name: str
    arguments: str


class ToolCall(Strict):
    """A call of an earlier assistant turn."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class AssistantMessage(Strict):
    """An earlier answer."""

    role: Literal["assistant"]
    content: Parts | None = None
    name: Annotated[object, _NAME] = None
    tool_calls: Annotated[list[ToolCall], Field(fail_fast=True)] | None = None
    refusal: Annotated[object, not_built("")] = None
    audio: Annotated[object, not_built()] = None
    function_call: Annotated[object, not_built(hint="use tool_calls")] = None
    annotations: Annotated[object, not_built([])] = None


class ToolMessage(Strict):
    """What a tool answered."""

    role: Literal["tool"]
    content: Parts
    tool_call_id: str


_ROLES = tagged("role", ("system", "developer", "user", "assistant", "tool"), "a message")


Message = Annotated[
    Annotated[
        Annotated[SystemMessage, Tag("<system>")]
        | Annotated[SystemMessage, Tag("<developer>")]
        | Annotated[UserMessage, Tag("<user>")]
        | Annotated[AssistantMessage, Tag("<assistant>")]
        | Annotated[ToolMessage, Tag("<tool>")],
        by("role"),
    ],
    _ROLES,
]


class Function(Strict):
    """A function the model may call."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    description: str = ""
    parameters: dict[str, object] = Field(default_factory=dict)
    strict: Annotated[object, not_built(False)] = None


class Tool(Strict):
    """A tool the model may call."""

    type: Literal["function"]
    function: Function


class StreamOptions(Strict):
    """Options of a streamed answer."""

    include_usage: bool = False
    include_obfuscation: Annotated[object, not_built(False)] = None


StopSequence = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_STOP_SEQUENCE_CHARS)]


def _as_stops(value: object) -> object:
    return [value] if isinstance(value, str) else [] if value is None else value


class Common(Strict):
    """Fields of both routes."""

    model: Annotated[str, StringConstraints(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: Annotated[
        list[StopSequence], Field(max_length=limits.MAX_STOP_SEQUENCES), BeforeValidator(_as_stops)
    ] = Field(default_factory=list[str])
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    intent: str | None = None
    return_logprobs: bool = False
    user: Annotated[object, no_effect(str)] = None
    n: Annotated[object, not_built(1)] = None
    logit_bias: Annotated[object, not_built({})] = None


class ChatRequest(Common):
    """Body of `POST /v1/chat/completions`."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=limits.MAX_MESSAGES, fail_fast=True)]
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=limits.MAX_TOP_LOGPROBS)] | None = None
    tools: Annotated[list[Tool], Field(fail_fast=True)] | None = None
    tool_choice: Annotated[object, not_built("auto", "none", hint="use auto or none")] = None
    parallel_tool_calls: Annotated[object, not_built(True)] = None
    metadata: Annotated[object, no_effect(dict, largest=64)] = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    safety_identifier: Annotated[object, no_effect(str)] = None
    prompt_cache_key: Annotated[object, no_effect(str)] = None
    store: Annotated[object, not_built(False)] = None
    response_format: Annotated[object, not_built({"type": "text"})] = None
    modalities: Annotated[object, not_built(["text"])] = None
    audio: Annotated[object, not_built()] = None
    prediction: Annotated[object, not_built()] = None
    moderation: Annotated[object, not_built()] = None
    functions: Annotated[object, not_built([], hint="use tools")] = None
    function_call: Annotated[object, not_built("none", hint="use tool_choice")] = None
    reasoning_effort: Annotated[object, not_built("none")] = None
    verbosity: Annotated[object, not_built("medium")] = None
    web_search_options: Annotated[object, not_built()] = None
    prompt_cache_options: Annotated[object, not_built()] = None
    prompt_cache_retention: Annotated[object, not_built()] = None


def _prompt(value: object) -> object:
    """Text or token ids; a list of one prompt is that prompt, several are not built."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise refused("Input should be a string or a non-empty list of token ids")
    items = cast("list[object]", value)
    if isinstance(items[0], str | list):
        if len(items) > 1:
            raise refused("several prompts in one request are not supported by this server")
        return _prompt(cast("object", items[0]))
    if not all(type(token) is int and 0 <= token < 2**31 for token in items):
        raise refused("every token id should be a non-negative integer")
    return tuple(items)


class CompletionRequest(Common):
    """Body of `POST /v1/completions`."""

    prompt: Annotated[str | tuple[int, ...], PlainValidator(_prompt)]
    logprobs: Annotated[int, Field(ge=0, le=limits.MAX_TOP_LOGPROBS)] | None = None
    best_of: Annotated[object, not_built(1)] = None
    echo: Annotated[object, not_built(False)] = None
    suffix: Annotated[object, not_built("")] = None
