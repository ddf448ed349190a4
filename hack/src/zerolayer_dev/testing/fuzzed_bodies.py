"""Request bodies for both protocols that are wrong in one or several places, and sometimes right."""

# ruff: noqa: PLR2004 - what a die shows has no name

import json
import random
from collections.abc import Callable
from typing import Any

Dice = random.Random
_KEYS = (
    *("model", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options", "stop", "seed"),
    *(
        "stop_sequences",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "system",
        "tools",
        "tool_choice",
        "metadata",
    ),
    *(
        "service_tier",
        "cache_control",
        "thinking",
        "n",
        "logprobs",
        "top_logprobs",
        "return_logprobs",
        "user",
    ),
    *("intent", "prompt", "echo", "best_of", "suffix", "logit_bias", "response_format", "include_usage"),
    *("role", "content", "type", "text", "name", "id", "input", "input_schema", "tool_use_id", "tool_calls"),
    *("function", "arguments", "parameters", "presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("user_id", "ttl", "strict", "description", "tool_call_id", "refusal", "", "\x00", "no_such_field"),
)
_WORDS = (
    *(
        "fake-model",
        "user",
        "assistant",
        "system",
        "tool",
        "text",
        "tool_use",
        "tool_result",
        "image",
        "auto",
    ),
    *("none", "ephemeral", "function", "deterministic", "creative", "standard_only", "custom", "any", "5m"),
    *("", " ", "a", "two words", "\n\n", "\x00", "\ud83d", "é", "😀", "\u202e", "NaN", "-1", "{}", "null"),
)
_NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 100, 199, 200, 201, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30),
    *(-(2**63), -(2**63) - 1, 0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 2.1, -0.1, 1e-30, 1e308, 5e-324),
)
_BROKEN = (
    b"",
    b" ",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{}{}",
    b'{"a":NaN}',
    b'{"model":1e999}',
    b'{"a":' * 300,
    b"[" * 5000,
    b'{"model":"fake-model","model":2}',
    b'{"a":"\\ud800"}',
)


def messages_body(dice: Dice) -> dict[str, Any]:
    """A valid body of the Messages API."""
    turns = [
        {"role": ("user", "assistant")[i % 2], "content": _content(dice)}
        for i in range(dice.choice([1, 1, 3]))
    ]
    body: dict[str, Any] = {"model": "fake-model", "max_tokens": dice.randint(1, 4), "messages": turns}
    return body | _some(
        dice,
        {
            "system": lambda: _content(dice),
            "stop_sequences": lambda: ["xyz", "\n\n"][: dice.randint(0, 2)],
            "stream": lambda: dice.random() < 0.5,
            "temperature": lambda: dice.choice([0, 0.3, 1]),
            "top_p": lambda: 0.9,
            "top_k": lambda: 5,
            "metadata": lambda: {"user_id": "u"},
            "service_tier": lambda: "auto",
            "return_logprobs": lambda: True,
            "thinking": lambda: {"type": "disabled"},
        },
    )


def chat_body(dice: Dice) -> dict[str, Any]:
    """A valid body of the chat API."""
    turns = [
        {"role": ("user", "assistant")[i % 2], "content": "hi there"} for i in range(dice.choice([1, 1, 3]))
    ]
    body: dict[str, Any] = {"model": "fake-model", "max_completion_tokens": dice.randint(1, 4)}
    body["messages"] = [{"role": "developer", "content": "be brief"}] * dice.randint(0, 1) + turns
    return body | _some(
        dice,
        {
            "logprobs": lambda: True,
            "n": lambda: 1,
            "user": lambda: "u",
            "response_format": lambda: {"type": "text"},
            **_openai(dice),
        },
    )


def completion_body(dice: Dice) -> dict[str, Any]:
    """A valid body of the completions API."""
    prompt = dice.choice(["once upon", [1, 2, 3], ["a time"], [[4, 5]]])
    body: dict[str, Any] = {"model": "fake-model", "max_tokens": dice.randint(1, 4), "prompt": prompt}
    return body | _some(dice, {"logprobs": lambda: 2, "echo": lambda: False, **_openai(dice)})


BODIES: dict[str, Callable[[Dice], dict[str, Any]]] = {
    "/v1/messages": messages_body,
    "/v1/messages/count_tokens": lambda dice: _without(messages_body(dice), "max_tokens", "stream"),
    "/v1/chat/completions": chat_body,
    "/v1/completions": completion_body,
}


def fuzzed(dice: Dice, path: str) -> bytes:
    """A body for a path: broken JSON, or a valid body with up to four places changed."""
    if dice.random() < 0.05:
        return dice.choice(_BROKEN)
    body: Any = BODIES[path](dice)
    for _ in range(dice.choice([0, 1, 1, 1, 2, 4])):
        body = mutated(dice, body)
    text = json.dumps(body).encode()
    if dice.random() < 0.05:
        at = dice.randrange(len(text))
        text = text[:at] + bytes([dice.randrange(256)]) * dice.randint(0, 2) + text[at + 1 :]
    return text


def mutated(dice: Dice, value: Any, depth: int = 0) -> Any:
    """The value with one place in it replaced, removed, doubled or added."""
    if dice.random() < 0.3 + 0.1 * depth and depth:
        return junk(dice)
    if isinstance(value, dict):
        return _mutated_object(dice, value, depth)
    if isinstance(value, list) and value:
        at = dice.randrange(len(value))
        new = [[], [mutated(dice, value[at], depth + 1)], [value[at]] * 2][dice.choice([0, 1, 1, 1, 2])]
        return [*value[:at], *new, *value[at + 1 :]]
    return junk(dice)


def _mutated_object(dice: Dice, value: dict[str, Any], depth: int) -> dict[str, Any]:
    what = dice.random()
    if what < 0.25 or not value:
        return value | {dice.choice(_KEYS): junk(dice)}
    key = dice.choice(list(value))
    if what < 0.4:
        return _without(value, key)
    return value | {key: mutated(dice, value[key], depth + 1)}


def junk(dice: Dice, depth: int = 0) -> Any:
    """Any JSON value, small ones and edge cases above all."""
    kind = dice.randrange(7 if depth < 3 else 5)
    if kind == 0:
        return dice.choice([None, True, False])
    if kind in (1, 2):
        return dice.choice(_NUMBERS)
    if kind in (3, 4):
        return dice.choice(_WORDS) * dice.choice([1, 1, 1, 40])
    if kind == 5:
        return [junk(dice, depth + 1) for _ in range(dice.choice([0, 1, 2, 20]))]
    return {dice.choice(_KEYS): junk(dice, depth + 1) for _ in range(dice.randint(0, 4))}


def _content(dice: Dice) -> Any:
    block = {"type": "text", "text": "hello"}
    return dice.choice(["hello world", [block], [block, block | {"cache_control": {"type": "ephemeral"}}]])


def _openai(dice: Dice) -> dict[str, Callable[[], Any]]:
    return {
        "stop": lambda: dice.choice(["xyz", ["a b", "c"], None]),
        "stream": lambda: dice.random() < 0.5,
        "seed": lambda: dice.randrange(100),
        "temperature": lambda: dice.choice([0, 0.7, 2]),
        "top_p": lambda: 0.5,
        "top_k": lambda: 3,
        "min_p": lambda: 0.1,
        "intent": lambda: dice.choice(["deterministic", "creative"]),
        "return_logprobs": lambda: True,
    }


def _some(dice: Dice, fields: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    return {name: make() for name, make in fields.items() if dice.random() < 0.25}


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}
