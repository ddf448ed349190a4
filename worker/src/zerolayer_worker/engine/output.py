"""From chosen tokens to an answer's events: text, stop sequences, the end."""

from collections.abc import Sequence
from dataclasses import dataclass

from zerolayer_worker.engine.api import FinishReason, TextDelta, TokenLogprob
from zerolayer_worker.models.tokenizer import Detokenizer


@dataclass(frozen=True, slots=True)
class Ending:
    """Why an answer is over, and the stop sequence that ended it, if one did."""

    reason: FinishReason
    stop_sequence: str | None = None


class StopMatcher:
    """Finds stop sequences in text that comes in pieces.

    Text that may still become a stop sequence is held back, so that nothing has to be taken back.
    """

    __slots__ = ("_held", "_stops")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""

    def push(self, text: str) -> tuple[str, str | None]:
        """Takes more text; returns what may be shown, and the stop sequence found right after it."""
        held = self._held + text
        found = [(held.find(stop), -len(stop), stop) for stop in self._stops if stop in held]
        if found:
            place, _, stop = min(found)
            self._held = ""
            return held[:place], stop
        keep = max((_overlap(held, stop) for stop in self._stops), default=0)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep], None

    def flush(self) -> str:
        """What was held back, once no more text follows."""
        held, self._held = self._held, ""
        return held


class OutputProcessor:
    """One answer's way from tokens to events."""

    def __init__(
        self, detokenizer: Detokenizer, *, max_tokens: int, eos_ids: frozenset[int], stops: Sequence[str]
    ) -> None:
        self._detokenizer = detokenizer
        self._stops = StopMatcher(stops)
        self._max_tokens = max_tokens
        self._eos_ids = eos_ids
        self._pending_ids: list[int] = []
        self._pending_logprobs: list[TokenLogprob] = []
        self.tokens = 0

    def push(self, token_id: int, logprob: TokenLogprob | None) -> tuple[TextDelta | None, Ending | None]:
        """Takes the next token; returns the text it completes and, if it was the last one, the ending."""
        self.tokens += 1
        if token_id in self._eos_ids:
            return self._delta(self._stops.flush()), Ending(FinishReason.END_OF_SEQUENCE)
        self._pending_ids.append(token_id)
        if logprob is not None:
            self._pending_logprobs.append(logprob)
        text, stop = self._stops.push(self._detokenizer.push(token_id))
        if stop is not None:
            return self._delta(text), Ending(FinishReason.STOP_SEQUENCE, stop)
        if self.tokens >= self._max_tokens:
            return self._delta(text + self._stops.flush()), Ending(FinishReason.LENGTH)
        return self._delta(text), None

    def _delta(self, text: str) -> TextDelta | None:
        """Tokens travel with the text they led to; those that led to none wait for the next text."""
        if not text:
            return None
        delta = TextDelta(text, tuple(self._pending_ids), tuple(self._pending_logprobs))
        self._pending_ids, self._pending_logprobs = [], []
        return delta


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`, but not all of it."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
