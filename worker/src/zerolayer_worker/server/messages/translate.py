"""From a Messages body to a conversation in chat-template form."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from zerolayer_worker.server.conversation import ChatMessage, Conversation
from zerolayer_worker.server.errors import invalid
from zerolayer_worker.server.messages.schema import (
    AssistantTurn,
    Prompt,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    UserTurn,
)


def conversation(prompt: Prompt, *, supports_tools: bool) -> Conversation:
    """Renders system prompt, turns and tools; neighbouring turns of one role become one, as upstream.

    Raises:
        ApiError: 400 for tools the template can't render and for a prefilled assistant turn.
    """
    if not supports_tools:
        _refuse_tools(prompt)
    if isinstance(prompt.messages[-1], AssistantTurn):
        raise invalid(
            "messages",
            "the conversation must end with a user message; prefilling the answer is not supported",
        )
    system = "\n\n".join(block.text for block in prompt.system)
    instructions: list[ChatMessage] = [{"role": "system", "content": system}] if system else []
    turns = _joined(part for turn in prompt.messages for part in _turn(turn))
    offered = prompt.tool_choice is None or prompt.tool_choice.type != "none"
    return Conversation([*instructions, *turns], [_tool(tool) for tool in prompt.tools] if offered else [])


def _refuse_tools(prompt: Prompt) -> None:
    if prompt.tools:
        raise invalid("tools", "the served model's chat template does not support tools")
    for index, turn in enumerate(prompt.messages):
        for position, block in enumerate(turn.content):
            if not isinstance(block, TextBlock):
                where = f"messages.{index}.content.{position}"
                raise invalid(where, f"{block.type}: the served model's chat template does not support tools")


def _joined(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    for role, group in groupby(messages, _plain_role):
        if role is None:
            yield from group
        else:
            yield {"role": role, "content": "\n\n".join(str(message["content"]) for message in group)}


def _plain_role(message: ChatMessage) -> object:
    """The role of a message of text alone, None for one that carries a call or a result."""
    return message["role"] if set(message) == {"role", "content"} else None


def _turn(turn: Turn) -> Iterator[ChatMessage]:
    if isinstance(turn, UserTurn):
        for block in turn.content:
            if isinstance(block, ToolResultBlock):
                yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": _text(block.content)}
    text = _text([block for block in turn.content if isinstance(block, TextBlock)])
    calls = [_call(block) for block in turn.content if isinstance(block, ToolUseBlock)]
    if calls:
        yield {"role": turn.role, "content": text, "tool_calls": calls}
    elif text:
        yield {"role": turn.role, "content": text}


def _text(blocks: list[TextBlock]) -> str:
    return "".join(block.text for block in blocks)


def _call(block: ToolUseBlock) -> dict[str, object]:
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.input}}


def _tool(tool: Tool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}
