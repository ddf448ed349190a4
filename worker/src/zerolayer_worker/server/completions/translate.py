"""From a chat body to a conversation in chat-template form."""

import json

from zerolayer_worker.server import limits, structure
from zerolayer_worker.server.completions.schema import (
    AssistantMessage,
    ChatRequest,
    Message,
    TextPart,
    ToolMessage,
)
from zerolayer_worker.server.conversation import ChatMessage, Conversation
from zerolayer_worker.server.errors import invalid


def conversation(request: ChatRequest, *, supports_tools: bool) -> Conversation:
    """Renders messages and tools; `developer` is what newer clients call `system`.

    Raises:
        ApiError: 400 for tools the template can't render, and where nothing asks for an answer.
    """
    if not supports_tools:
        _refuse_tools(request)
    if isinstance(request.messages[-1], AssistantMessage):
        raise invalid(
            "messages", "the last message must not be the assistant's; continuing an answer is not supported"
        )
    messages = [_message(message, f"messages.{index}") for index, message in enumerate(request.messages)]
    tools = [tool.model_dump(exclude={"function": {"strict"}}) for tool in request.tools or []]
    return Conversation(messages, tools if request.tool_choice != "none" else [])


def _refuse_tools(request: ChatRequest) -> None:
    if request.tools:
        raise invalid("tools", "the served model's chat template does not support tools")
    for index, message in enumerate(request.messages):
        if isinstance(message, ToolMessage) or (isinstance(message, AssistantMessage) and message.tool_calls):
            raise invalid(f"messages.{index}", "the served model's chat template does not support tools")


def _message(message: Message, where: str) -> ChatMessage:
    role = "system" if message.role == "developer" else message.role
    rendered: dict[str, object] = {"role": role, "content": _text(message.content or [])}
    if isinstance(message, ToolMessage):
        rendered["tool_call_id"] = message.tool_call_id
    if isinstance(message, AssistantMessage) and message.tool_calls:
        rendered["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": _arguments(call.function.arguments, where),
                },
            }
            for call in message.tool_calls
        ]
    return rendered


def _arguments(text: str, where: str) -> object:
    """Chat templates want the object, clients send its JSON text."""
    if structure.exceeds(text.encode(), limits.MAX_STRUCTURE):
        most = limits.MAX_STRUCTURE
        raise invalid(f"{where}.tool_calls", f"arguments hold more than {most} objects, lists and fields")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise invalid(f"{where}.tool_calls", "arguments must be valid JSON") from None


def _text(parts: list[TextPart]) -> str:
    return "".join(part.text for part in parts)
