"""The Messages API's shapes for an answer."""

from typing import Final

from zerolayer_worker.engine.api import Finished, FinishReason, TextDelta
from zerolayer_worker.server.answer import Answer, AnswerInfo, event, logprob_entries
from zerolayer_worker.server.errors import ApiError, JsonObject, Protocol

STOP_REASONS: Final = {
    FinishReason.END_OF_SEQUENCE: "end_turn",
    FinishReason.STOP_SEQUENCE: "stop_sequence",
    FinishReason.LENGTH: "max_tokens",
}
PING: Final = event("ping", {"type": "ping"})


class MessagesFormat:
    """`AnswerFormat` of `POST /v1/messages`."""

    def __init__(self, info: AnswerInfo, *, logprobs: bool) -> None:
        self._info = info
        self._logprobs = logprobs

    def start(self) -> bytes:
        """`message_start`, `content_block_start` and a first `ping`."""
        block: JsonObject = {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        }
        return (
            event("message_start", {"type": "message_start", "message": self._message([], None)})
            + event("content_block_start", block)
            + PING
        )

    def delta(self, delta: TextDelta) -> bytes:
        """`content_block_delta`, with log-probabilities only where they were asked for."""
        if not delta.text and not delta.logprobs:
            return b""
        data: JsonObject = {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": delta.text},
        }
        if self._logprobs:
            data["logprobs"] = {"content": logprob_entries(delta.logprobs)}
        return event("content_block_delta", data)

    def finish(self, finished: Finished) -> bytes:
        """`content_block_stop`, `message_delta` and `message_stop`."""
        delta: JsonObject = {
            "type": "message_delta",
            "delta": {"stop_reason": STOP_REASONS[finished.reason], "stop_sequence": finished.stop_sequence},
            "usage": self._counts(finished),
        }
        return (
            event("content_block_stop", {"type": "content_block_stop", "index": 0})
            + event("message_delta", delta)
            + event("message_stop", {"type": "message_stop"})
        )

    def error(self, error: ApiError) -> bytes:
        """The `error` event."""
        return event("error", error.render(Protocol.MESSAGES, self._info.request_id))

    def ping(self) -> bytes:
        """The `ping` event."""
        return PING

    def body(self, answer: Answer) -> JsonObject:
        """A whole message."""
        message = self._message([{"type": "text", "text": answer.text}], answer.finished)
        if self._logprobs:
            message["logprobs"] = {"content": logprob_entries(answer.logprobs)}
        return message

    def _message(self, content: list[JsonObject], finished: Finished | None) -> JsonObject:
        return {
            "id": f"msg_{self._info.request_id.removeprefix('req_')}",
            "type": "message",
            "role": "assistant",
            "model": self._info.model,
            "content": content,
            "stop_reason": STOP_REASONS[finished.reason] if finished else None,
            "stop_sequence": finished.stop_sequence if finished else None,
            "usage": self._usage(finished),
        }

    def _usage(self, finished: Finished | None) -> JsonObject:
        """What a message says of its cost."""
        return {**self._counts(finished), "service_tier": "standard"}

    def _counts(self, finished: Finished | None) -> JsonObject:
        """Upstream counts what came from the cache apart from `input_tokens`."""
        cached = finished.cached_tokens if finished else 0
        return {
            "input_tokens": self._info.prompt_tokens - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": finished.output_tokens if finished else 0,
        }
