"""Request bodies of the Messages API, and which of their fields are built."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, Tag

from zerolayer_worker.server import limits
from zerolayer_worker.server.validation import Strict, by, no_effect, not_built, refused, tagged, text_or_list


class CacheControl(Strict):
    """Accepted: caching never changes an answer."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Strict):
    """Text of a turn or of the system prompt."""

    type: Literal["text"]
    text: Annotated[str, StringConstraints(min_length=1)]
    cache_control: CacheControl | None = None
    citations: Annotated[object, not_built([])] = None


class ToolUseBlock(Strict):
    """A tool call of an earlier assistant turn."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, object]
    cache_control: CacheControl | None = None


_BLOCKS = text_or_list("content blocks")
_TEXT = tagged("type", ("text",), "a content block")
_USER = tagged("type", ("text", "tool_result"), "a content block")
_ASSISTANT = tagged("type", ("text", "tool_use"), "a content block")
_ROLES = tagged("role", ("user", "assistant"), "a message")

TextBlocks = Annotated[list[Annotated[TextBlock, _TEXT]], Field(fail_fast=True), _BLOCKS]


class ToolResultBlock(Strict):
    """What a tool answered."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: TextBlocks = Field(default_factory=list[TextBlock])
    is_error: Annotated[object, not_built(False, hint="say in content that the call failed")] = None
    cache_control: CacheControl | None = None


UserBlock = Annotated[
    Annotated[
        Annotated[TextBlock, Tag("<text>")] | Annotated[ToolResultBlock, Tag("<tool_result>")], by("type")
    ],
    _USER,
]
AssistantBlock = Annotated[
    Annotated[Annotated[TextBlock, Tag("<text>")] | Annotated[ToolUseBlock, Tag("<tool_use>")], by("type")],
    _ASSISTANT,
]


class UserTurn(Strict):
    """A turn of the user, or the results of tools."""

    role: Literal["user"]
    content: Annotated[list[UserBlock], Field(min_length=1, fail_fast=True), _BLOCKS]


class AssistantTurn(Strict):
    """An earlier answer."""

    role: Literal["assistant"]
    content: Annotated[list[AssistantBlock], Field(min_length=1, fail_fast=True), _BLOCKS]


Turn = Annotated[
    Annotated[Annotated[UserTurn, Tag("<user>")] | Annotated[AssistantTurn, Tag("<assistant>")], by("role")],
    _ROLES,
]


class Tool(Strict):
    """A tool the model may call; server-side tools of the real API are not built."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    description: str = ""
    input_schema: dict[str, object]
    type: Literal["custom"] | None = None
    cache_control: CacheControl | None = None
    strict: Annotated[object, not_built(False)] = None


def _choice(value: object) -> object:
    if value in ("any", "tool"):
        raise refused(f"{value!r} is not supported by this server; use auto or none")
    return value


class ToolChoice(Strict):
    """Whether tools may be called; forcing a call is not built."""

    type: Annotated[Literal["auto", "none"], BeforeValidator(_choice)]
    disable_parallel_tool_use: Annotated[object, not_built(False)] = None


class Prompt(Strict):
    """What a request and its token count have in common."""

    model: Annotated[str, StringConstraints(min_length=1)]
    messages: Annotated[list[Turn], Field(min_length=1, max_length=limits.MAX_MESSAGES, fail_fast=True)]
    system: TextBlocks = Field(default_factory=list[TextBlock])
    tools: Annotated[list[Tool], Field(fail_fast=True)] = Field(default_factory=list[Tool])
    tool_choice: ToolChoice | None = None
    cache_control: CacheControl | None = None
    thinking: Annotated[object, not_built({"type": "disabled"})] = None
    output_config: Annotated[object, not_built({})] = None
    speed: Annotated[object, not_built("standard")] = None
    user_profile_id: Annotated[object, not_built()] = None
    workspace_id: Annotated[object, not_built()] = None
    mcp_servers: Annotated[object, not_built([])] = None
    context_management: Annotated[object, not_built()] = None


class CountTokensRequest(Prompt):
    """Body of `POST /v1/messages/count_tokens`."""


StopSequence = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_STOP_SEQUENCE_CHARS)]


class MessagesRequest(Prompt):
    """Body of `POST /v1/messages`."""

    max_tokens: Annotated[int, Field(ge=1)]
    stream: bool = False
    stop_sequences: Annotated[list[StopSequence], Field(max_length=limits.MAX_STOP_SEQUENCES)] = Field(
        default_factory=list
    )
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    return_logprobs: bool = False
    metadata: Annotated[dict[str, object] | None, no_effect(dict, largest=64)] = None
    service_tier: Literal["auto", "standard_only"] | None = None
    container: Annotated[object, not_built()] = None
    diagnostics: Annotated[object, not_built()] = None
    inference_geo: Annotated[object, not_built()] = None
