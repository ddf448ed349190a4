"""Valid requests over all that each route accepts, made from a seed, as arguments of the SDKs' calls."""

# ruff: noqa: PLR2004 - what a die shows has no name

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Dice = random.Random
_TEXTS = (
    "Name a colour.",
    "Count from one to five.",
    "Wie heißt du?",
    "say 😀 twice",
    "a\n\nb",
    "What is 2 + 2?",
)


@dataclass(frozen=True)
class Generated:
    """One request.

    Attributes:
        route: `messages`, `chat` or `completions`.
        arguments: of the SDK's `create`, without the model and `stream`.
        repeats: whether the same request has the same answer.
    """

    route: str
    arguments: dict[str, Any]
    repeats: bool


def generate(seed: int) -> Generated:
    """A request; the same for the same seed."""
    dice = Dice(seed)
    route = dice.choice(["messages", "messages", "chat", "chat", "completions"])
    return {"messages": _messages, "chat": _chat, "completions": _completion}[route](dice)


def _messages(dice: Dice) -> Generated:
    intent = _intent(dice)
    extra = _sampling(dice, intent, {"temperature": [0, 0.5, 1], "top_p": [0.5, 1], "top_k": [1, 40]})
    extra |= _some(dice, {"return_logprobs": lambda: dice.random() < 0.5})
    arguments = {
        "max_tokens": dice.randint(1, 6),
        "messages": [
            {"role": role, "content": _blocks(dice, cached=True)}
            for role in _roles(dice, "user", "assistant")
        ],
        "extra_headers": _headers(dice, intent),
        "extra_body": extra,
        **_some(
            dice,
            {
                "system": lambda: _blocks(dice, cached=True),
                "stop_sequences": lambda: _stops(dice),
                "metadata": lambda: dice.choice([{}, {"user_id": "ann"}, {"user_id": None}]),
                "service_tier": lambda: dice.choice(["auto", "standard_only"]),
                "cache_control": lambda: {"type": "ephemeral", "ttl": dice.choice(["5m", "1h"])},
                "thinking": lambda: {"type": "disabled"},
                "tools": list,
                "tool_choice": lambda: {"type": dice.choice(["auto", "none"])},
            },
        ),
    }
    return Generated("messages", arguments, _greedy(intent, extra))


def _chat(dice: Dice) -> Generated:
    roles = _roles(dice, "user", "assistant")
    system = [{"role": dice.choice(["system", "developer"]), "content": "Be brief."}] * dice.randint(0, 1)
    shared, repeats = _openai(dice)
    length = dice.choice([{"max_tokens": 5}, {"max_completion_tokens": 4}, {"max_tokens": 3}])
    logprobs = dice.choice(
        [{}, {}, {"logprobs": False}, {"logprobs": True, "top_logprobs": dice.randint(0, 5)}]
    )
    arguments = {
        **shared,
        **length,
        **logprobs,
        "messages": system + [{"role": role, "content": _blocks(dice, cached=False)} for role in roles],
        **_some(
            dice,
            {
                "metadata": lambda: {"run": "1"},
                "service_tier": lambda: dice.choice(["auto", "default", "flex", "priority"]),
                "safety_identifier": lambda: "ann",
                "prompt_cache_key": lambda: "k",
                "store": lambda: False,
                "response_format": lambda: {"type": "text"},
                "modalities": lambda: ["text"],
                "parallel_tool_calls": lambda: True,
                "tool_choice": lambda: dice.choice(["auto", "none"]),
            },
        ),
    }
    return Generated("chat", arguments, repeats)


def _completion(dice: Dice) -> Generated:
    shared, repeats = _openai(dice)
    prompt = dice.choice(["Once upon a time", [1, 504, 253], ["The sea"], [[9, 8, 7]]])
    arguments = {
        **shared,
        "prompt": prompt,
        **_some(
            dice,
            {
                "max_tokens": lambda: dice.randint(1, 6),
                "logprobs": lambda: dice.randint(0, 5),
                "best_of": lambda: 1,
                "echo": lambda: False,
            },
        ),
    }
    return Generated("completions", {"max_tokens": 5, **arguments}, repeats)


def _openai(dice: Dice) -> tuple[dict[str, Any], bool]:
    intent = _intent(dice)
    own = {"temperature": [0, 0.7, 2], "top_p": [0.5, 1], "top_k": [1, 40], "min_p": [0, 0.1]}
    extra = _sampling(dice, intent, own)
    by_body = intent is not None and dice.random() < 0.5
    if by_body:
        extra["intent"] = intent
    extra |= _some(dice, {"return_logprobs": lambda: dice.random() < 0.5})
    arguments = {
        "extra_headers": {} if by_body else _headers(dice, intent),
        "extra_body": extra,
        **_some(
            dice,
            {
                "stop": lambda: dice.choice([None, "xyz", _stops(dice)]),
                "seed": lambda: dice.choice([0, 1, -5, 2**62]),
                "user": lambda: "ann",
                "n": lambda: 1,
                "logit_bias": dict,
                "frequency_penalty": lambda: 0,
                "presence_penalty": lambda: 0.0,
            },
        ),
    }
    return arguments, _greedy(intent, extra) or arguments.get("seed") is not None


def _intent(dice: Dice) -> str | None:
    return dice.choice([None, None, "deterministic", "balanced", "creative"])


def _greedy(intent: str | None, extra: dict[str, Any]) -> bool:
    """An intent's temperature is its own: one of 0 counts in classic requests alone."""
    return intent == "deterministic" or (intent is None and extra.get("temperature") == 0)


def _headers(dice: Dice, intent: str | None) -> dict[str, str]:
    headers = {} if intent is None else {"anthropic-sampling-intent": intent}
    return headers | _some(
        dice,
        {
            "anthropic-version": lambda: dice.choice(["2023-06-01", "2031-01-01"]),
            "x-api-key": lambda: "other",
        },
    )


def _sampling(dice: Dice, intent: str | None, own: dict[str, list[Any]]) -> dict[str, Any]:
    """In zero-layer mode only `temperature: 0` may stand there."""
    if intent is not None:
        return _some(dice, {"temperature": lambda: 0})
    return _some(dice, {name: lambda values=values: dice.choice(values) for name, values in own.items()})


def _roles(dice: Dice, asks: str, answers: str) -> list[str]:
    return [(asks, answers)[turn % 2] for turn in range(dice.choice([1, 1, 3]))]


def _blocks(dice: Dice, *, cached: bool) -> Any:
    text = dice.choice(_TEXTS)
    block: dict[str, Any] = {"type": "text", "text": text}
    marked = block | ({"cache_control": {"type": "ephemeral"}} if cached else {})
    return dice.choice([text, [block], [block, marked]])


def _stops(dice: Dice) -> list[str]:
    return dice.sample(["xyz", ".", "\n", "e", "one, two"], dice.randint(0, 3))


def _some(dice: Dice, fields: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    return {name: make() for name, make in fields.items() if dice.random() < 0.3}
