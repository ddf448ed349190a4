"""From request bodies to conversations in chat-template form."""

import json
import time
from typing import Any

import pytest

from zerolayer_worker.server import limits
from zerolayer_worker.server.completions import translate as openai
from zerolayer_worker.server.completions.schema import ChatRequest
from zerolayer_worker.server.errors import ApiError, Protocol
from zerolayer_worker.server.messages import translate as messages
from zerolayer_worker.server.messages.schema import MessagesRequest
from zerolayer_worker.server.validation import validate


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def from_messages(*, supports_tools: bool = True, **body: Any) -> Any:
    whole = {"model": "m", "max_tokens": 1, **body}
    return messages.conversation(
        validate(MessagesRequest, whole, Protocol.MESSAGES), supports_tools=supports_tools
    )


def from_chat(*, supports_tools: bool = True, **body: Any) -> Any:
    whole = {"model": "m", **body}
    return openai.conversation(validate(ChatRequest, whole, Protocol.OPENAI), supports_tools=supports_tools)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"messages": [user("hi")]}, [user("hi")]),
        ({"messages": [user([text("a"), text("b")])]}, [user("ab")]),
        ({"system": "s", "messages": [user("hi")]}, [{"role": "system", "content": "s"}, user("hi")]),
        (
            {"system": [text("s"), text("t")], "messages": [user("hi")]},
            [{"role": "system", "content": "s\n\nt"}, user("hi")],
        ),
        (
            {"messages": [user("a"), user("b"), assistant("c"), user("d")]},
            [user("a\n\nb"), assistant("c"), user("d")],
        ),
        ({"system": [], "messages": [user("hi")]}, [user("hi")]),
    ],
)
def test_messages(body: Any, expected: Any) -> None:
    assert list(from_messages(**body).messages) == expected


def test_joining_thousands_of_turns_is_no_work_of_seconds() -> None:
    turn = "a" * 800
    request = validate(
        MessagesRequest,
        {"model": "m", "max_tokens": 1, "messages": [user(turn)] * limits.MAX_MESSAGES},
        Protocol.MESSAGES,
    )
    began = time.process_time()
    joined = messages.conversation(request, supports_tools=False).messages
    assert time.process_time() - began < 2
    assert joined == [user("\n\n".join([turn] * limits.MAX_MESSAGES))]


def test_tool_calls_and_results_of_messages() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "clock", "input": {"zone": "utc"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "noon"}
    other = {"type": "tool_result", "tool_use_id": "t2", "content": [text("late")], "is_error": False}
    conversation = from_messages(
        messages=[user("when?"), assistant([text("Let me see."), use]), user([result, other, text("So?")])],
        tools=[{"name": "clock", "description": "tells", "input_schema": {"type": "object"}}],
    )
    assert list(conversation.messages) == [
        user("when?"),
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "clock", "arguments": {"zone": "utc"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "noon"},
        {"role": "tool", "tool_call_id": "t2", "content": "late"},
        user("So?"),
    ]
    assert list(conversation.tools) == [
        {
            "type": "function",
            "function": {"name": "clock", "description": "tells", "parameters": {"type": "object"}},
        }
    ]


def test_tool_choice_none_offers_no_tool() -> None:
    tools = [{"name": "clock", "input_schema": {}}]
    assert from_messages(messages=[user("x")], tools=tools, tool_choice={"type": "none"}).tools == []
    assert len(from_messages(messages=[user("x")], tools=tools, tool_choice={"type": "auto"}).tools) == 1
    with pytest.raises(ApiError, match=r"tool_choice\.type: 'any' is not supported"):
        from_messages(messages=[user("x")], tools=tools, tool_choice={"type": "any"})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"messages": [user("x")], "tools": [{"name": "f", "input_schema": {}}]}, "tools: "),
        (
            {
                "messages": [
                    user("x"),
                    assistant([{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
                    user("y"),
                ]
            },
            "messages.1.content.0: tool_use",
        ),
        (
            {"messages": [user([{"type": "tool_result", "tool_use_id": "a"}])]},
            "messages.0.content.0: tool_result",
        ),
    ],
)
def test_tools_need_a_template_that_has_them(body: Any, named: str) -> None:
    with pytest.raises(ApiError, match=named):
        from_messages(supports_tools=False, **body)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([user("hi")], [user("hi")]),
        ([user([text("a"), text("b")])], [user("ab")]),
        ([{"role": "developer", "content": "d"}, user("u")], [{"role": "system", "content": "d"}, user("u")]),
        ([user("a"), assistant(None), user("b")], [user("a"), assistant(""), user("b")]),
        ([user("a"), user("b")], [user("a"), user("b")]),
    ],
)
def test_chat(sent: Any, expected: Any) -> None:
    assert list(from_chat(messages=sent).messages) == expected


def test_tool_calls_of_chat_need_json_arguments() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
    with pytest.raises(ApiError, match=r"messages\.1\.tool_calls: arguments"):
        from_chat(messages=[user("x"), {"role": "assistant", "tool_calls": [call]}, user("y")])


def test_arguments_have_bounded_structure_too() -> None:
    arguments = json.dumps([[]] * limits.MAX_STRUCTURE)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    with pytest.raises(ApiError, match=r"messages\.1\.tool_calls: arguments hold more than"):
        from_chat(messages=[user("x"), {"role": "assistant", "tool_calls": [call]}, user("y")])


def test_tool_choice_none_offers_no_tool_in_chat() -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "d"}}]
    offered = from_chat(messages=[user("x")], tools=tools)
    assert offered.tools == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}
    ]
    assert from_chat(messages=[user("x")], tools=tools, tool_choice="none").tools == []
