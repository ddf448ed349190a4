"""The OpenAI API's shapes for an answer."""

from collections.abc import Sequence
from typing import Final

from zerolayer_worker.engine.api import Finished, FinishReason, TextDelta, TokenLogprob
from zerolayer_worker.server.answer import Answer, AnswerInfo, chunk, logprob_entries
from zerolayer_worker.server.errors import ApiError, JsonObject, Protocol

FINISH_REASONS: Final = {
    FinishReason.END_OF_SEQUENCE: "stop",
    FinishReason.STOP_SEQUENCE: "stop",
    FinishReason.LENGTH: "length",
}
DONE: Final = b"data: [DONE]\n\n"
COMMENT: Final = b": keep-alive\n\n"


class _OpenAIFormat:
    """What chat and plain completions share."""

    id_prefix = ""
    object_name = ""

    def __init__(self, info: AnswerInfo, *, logprobs: bool, include_usage: bool) -> None:
        self._info = info
        self._logprobs = logprobs
        self._include_usage = include_usage

    def error(self, error: ApiError) -> bytes:
        """A chunk with an `error` key, which the SDK raises."""
        return chunk(error.render(Protocol.OPENAI, self._info.request_id))

    def ping(self) -> bytes:
        """A comment, which every reader of server-sent events skips."""
        return COMMENT

    def _finish(self, choice: JsonObject, finished: Finished) -> bytes:
        events = chunk(self._envelope([choice], streamed=True))
        if self._include_usage:
            events += chunk({**self._envelope([], streamed=True), "usage": usage(finished)})
        return events + DONE

    def _envelope(self, choices: list[JsonObject], *, streamed: bool) -> JsonObject:
        envelope: JsonObject = {
            "id": f"{self.id_prefix}-{self._info.request_id.removeprefix('req_')}",
            "object": f"{self.object_name}.chunk"
            if streamed and self.id_prefix == "chatcmpl"
            else self.object_name,
            "created": self._info.created,
            "model": self._info.model,
            "system_fingerprint": self._info.fingerprint,
            "choices": choices,
        }
        if streamed and self._include_usage:
            envelope["usage"] = None
        return envelope


class ChatFormat(_OpenAIFormat):
    """`AnswerFormat` of `POST /v1/chat/completions`."""

    id_prefix = "chatcmpl"
    object_name = "chat.completion"

    def start(self) -> bytes:
        """The first chunk, which names the role."""
        return chunk(self._envelope([self._choice({"role": "assistant", "content": ""})], streamed=True))

    def delta(self, delta: TextDelta) -> bytes:
        """A chunk of text."""
        if not delta.text and not delta.logprobs:
            return b""
        choice = self._choice({"content": delta.text})
        if self._logprobs:
            choice["logprobs"] = {"content": logprob_entries(delta.logprobs), "refusal": None}
        return chunk(self._envelope([choice], streamed=True))

    def finish(self, finished: Finished) -> bytes:
        """The empty last chunk, the usage where it was asked for, and `[DONE]`."""
        choice = {**self._choice({}), "finish_reason": FINISH_REASONS[finished.reason]}
        return self._finish(choice, finished)

    def body(self, answer: Answer) -> JsonObject:
        """A whole chat completion."""
        choice: JsonObject = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text, "refusal": None},
            "logprobs": {"content": logprob_entries(answer.logprobs), "refusal": None}
            if self._logprobs
            else None,
            "finish_reason": FINISH_REASONS[answer.finished.reason],
        }
        return {**self._envelope([choice], streamed=False), "usage": usage(answer.finished)}

    def _choice(self, delta: JsonObject) -> JsonObject:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}


class CompletionFormat(_OpenAIFormat):
    """`AnswerFormat` of `POST /v1/completions`."""

    id_prefix = "cmpl"
    object_name = "text_completion"

    def __init__(self, info: AnswerInfo, *, logprobs: bool, include_usage: bool) -> None:
        super().__init__(info, logprobs=logprobs, include_usage=include_usage)
        self._offset = 0

    def start(self) -> bytes:
        """Nothing: the first chunk of a completion already holds text."""
        return b""

    def delta(self, delta: TextDelta) -> bytes:
        """A chunk of text."""
        if not delta.text and not delta.logprobs:
            return b""
        return chunk(self._envelope([self._choice(delta.text, delta.logprobs, None)], streamed=True))

    def finish(self, finished: Finished) -> bytes:
        """The empty last chunk, the usage where it was asked for, and `[DONE]`."""
        return self._finish(self._choice("", (), FINISH_REASONS[finished.reason]), finished)

    def body(self, answer: Answer) -> JsonObject:
        """A whole completion."""
        choice = self._choice(answer.text, answer.logprobs, FINISH_REASONS[answer.finished.reason])
        return {**self._envelope([choice], streamed=False), "usage": usage(answer.finished)}

    def _choice(self, text: str, logprobs: Sequence[TokenLogprob], reason: str | None) -> JsonObject:
        return {
            "index": 0,
            "text": text,
            "logprobs": self._token_logprobs(logprobs) if self._logprobs else None,
            "finish_reason": reason,
        }

    def _token_logprobs(self, entries: Sequence[TokenLogprob]) -> JsonObject:
        offsets: list[int] = []
        for entry in entries:
            offsets.append(self._offset)
            self._offset += len(entry.text)
        return {
            "tokens": [entry.text for entry in entries],
            "token_logprobs": [entry.logprob for entry in entries],
            "top_logprobs": [{top.text: top.logprob for top in entry.top} for entry in entries],
            "text_offset": offsets,
        }


def usage(finished: Finished) -> JsonObject:
    """Token counts."""
    return {
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.output_tokens,
        "total_tokens": finished.prompt_tokens + finished.output_tokens,
        "prompt_tokens_details": {"cached_tokens": finished.cached_tokens},
    }
