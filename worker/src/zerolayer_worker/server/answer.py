"""What a protocol makes of the engine's events: one class per route implements `AnswerFormat`."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pydantic_core

from zerolayer_worker.engine.api import Finished, TextDelta, TokenLogprob
from zerolayer_worker.server.errors import ApiError, JsonObject


@dataclass(frozen=True, slots=True)
class AnswerInfo:
    """What every answer tells about itself.

    Attributes:
        request_id: the id in the `request-id` header.
        model: the served name.
        fingerprint: the engine's.
        prompt_tokens: length of the prompt.
        created: seconds since the epoch.
    """

    request_id: str
    model: str
    fingerprint: str
    prompt_tokens: int
    created: int

    @classmethod
    def now(cls, request_id: str, model: str, fingerprint: str, prompt_tokens: int) -> "AnswerInfo":
        """The same, created now."""
        return cls(request_id, model, fingerprint, prompt_tokens, int(time.time()))


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, for clients that do not stream."""

    text: str
    logprobs: Sequence[TokenLogprob]
    finished: Finished


class AnswerFormat(Protocol):
    """One protocol's shapes for one request."""

    def start(self) -> bytes:
        """Server-sent events before the first text."""
        ...

    def delta(self, delta: TextDelta) -> bytes:
        """Server-sent events for new text; empty where there is nothing to say."""
        ...

    def finish(self, finished: Finished) -> bytes:
        """Server-sent events after the last text."""
        ...

    def error(self, error: ApiError) -> bytes:
        """The server-sent event that ends a stream that could not be completed."""
        ...

    def ping(self) -> bytes:
        """A keep-alive."""
        ...

    def body(self, answer: Answer) -> JsonObject:
        """The body for clients that do not stream."""
        ...


def event(name: str, data: JsonObject) -> bytes:
    """A named server-sent event."""
    return b"event: " + name.encode() + b"\ndata: " + pydantic_core.to_json(data) + b"\n\n"


def chunk(data: JsonObject) -> bytes:
    """An unnamed server-sent event."""
    return b"data: " + pydantic_core.to_json(data) + b"\n\n"


def logprob_entries(entries: Iterable[TokenLogprob]) -> list[JsonObject]:
    """Log-probabilities per token in the shape the chat API gave the field."""
    return [
        {
            **_token(entry.text, entry.logprob),
            "top_logprobs": [_token(top.text, top.logprob) for top in entry.top],
        }
        for entry in entries
    ]


def _token(text: str, logprob: float) -> JsonObject:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}
