"""One request's state while it is in the engine."""

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from zerolayer_worker.engine.api import EngineEvent, GenerationRequest, SamplingParams
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.repeats import MAX_ANSWER_TOKENS
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.router import route
from zerolayer_worker.sampling.token_counts import TokenCounts

Deliver = Callable[[EngineEvent], None]
_SEED_BITS = 64

COLDEST: Final = 1e-30
"""Scores over a temperature below this may leave fp32's range; at this one, the best score already wins."""


@dataclass(slots=True)
class Sequence:
    """A request, what it has produced so far, and where its events go.

    Attributes:
        seed: the noise's seed; the request's own or a fresh one.
        answer: the tokens that were chosen so far.
        cached_tokens: of the prompt, those that an earlier request had computed.
        trace: the answer's first tokens, where they are kept to be compared; None where not.
        submitted: when it came, in seconds of the monotonic clock.
        queued_s: seconds from then until it first began to run.
        first_token_s: seconds from then until its first token; 0 before there is one.
        history: the tokens that penalties are about; None where there are no penalties.
    """

    request: GenerationRequest
    output: OutputProcessor
    deliver: Deliver
    seed: int
    answer: list[int] = field(default_factory=list[int])
    cached_tokens: int = 0
    trace: list[int] | None = None
    submitted: float = 0.0
    queued_s: float = 0.0
    first_token_s: float = 0.0
    history: TokenCounts | None = field(init=False)

    def __post_init__(self) -> None:
        self.history = _history(self.request)

    @property
    def length(self) -> int:
        """Tokens so far, of prompt and answer."""
        return len(self.request.prompt_ids) + len(self.answer)

    def token_at(self, position: int) -> int:
        """The token at a position of prompt or answer."""
        prompt = self.request.prompt_ids
        return prompt[position] if position < len(prompt) else self.answer[position - len(prompt)]

    def controls(self) -> SamplingControls:
        """How the token at position `length` is chosen."""
        params = self.request.sampling
        temperature, top_k, top_p, min_p = _parameters(params)
        return SamplingControls(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=self.seed,
            position=self.length,
            logprobs=params.logprobs,
            repetition_penalty=params.repetition_penalty,
            presence_penalty=params.presence_penalty,
            frequency_penalty=params.frequency_penalty,
            history=self.history,
        )

    @property
    def newest_token(self) -> int:
        """The prompt's last token, before there is one of the answer."""
        return self.token_at(self.length - 1)

    def take(self, token_id: int) -> None:
        """Appends the token that was chosen."""
        self.answer.append(token_id)
        if self.history is not None:
            self.history.add(token_id)
        if self.trace is not None and len(self.trace) < MAX_ANSWER_TOKENS:
            self.trace.append(token_id)


def seed_source(start: int | None) -> Callable[[], int]:
    """Seeds for requests that bring none: a sequence that `start` fixes, or, without it, anything."""
    if start is None:
        return lambda: secrets.randbits(_SEED_BITS)
    sequence = random.Random(start)  # noqa: S311 - to be repeatable is the point
    return lambda: sequence.getrandbits(_SEED_BITS)


def _history(request: GenerationRequest) -> TokenCounts | None:
    params = request.sampling
    if params.repetition_penalty != 1:
        return TokenCounts(request.prompt_ids)
    return TokenCounts() if params.presence_penalty or params.frequency_penalty else None


def _parameters(params: SamplingParams) -> tuple[float, int, float, float]:
    if params.intent is None:
        temperature = max(params.temperature, COLDEST) if params.temperature else 0.0
        return temperature, params.top_k, params.top_p, params.min_p
    fixed = route(params.intent)
    return fixed.temperature, 0, fixed.top_p, fixed.min_p
