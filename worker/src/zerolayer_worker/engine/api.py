"""The types between the HTTP server and the engine.

Both protocols (Messages and OpenAI) are built from these events and from nothing else, so neither is
ever parsed out of the other's text. No tensors here: the server never imports torch.
"""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.common.intents import Intent


class FinishReason(StrEnum):
    """Why an answer ended."""

    END_OF_SEQUENCE = "end_of_sequence"
    STOP_SEQUENCE = "stop_sequence"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen.

    Attributes:
        intent: set in zero-layer mode; the router then decides temperature and filters and the
            fields below are ignored. None means classic mode: the fields below count.
        temperature: 0 means the highest-scoring token, ties broken by the lowest id.
        top_p: nucleus mass in (0, 1]; 1 keeps everything.
        top_k: number of best tokens kept; 0 keeps everything.
        min_p: share of the best token's probability a token must reach, in [0, 1); 0 keeps everything.
        seed: noise is a function of (seed, position, token id); None draws a fresh seed.
        logprobs: number of alternatives reported per token; None reports nothing, 0 only the chosen one.
        repetition_penalty: above 0, about tokens of prompt and answer; 1 changes nothing.
        presence_penalty: in [-2, 2], about tokens of the answer.
        frequency_penalty: in [-2, 2], about tokens of the answer, once for each time.
    """

    intent: Intent | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    logprobs: int | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt, already tokenised, and what is wanted of it.

    `client` is whoever shares the engine fairly with the others: an opaque key, empty for nobody known.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop_sequences: tuple[str, ...] = ()
    client: str = ""


@dataclass(frozen=True, slots=True)
class TokenAlternative:
    """A token that could have been chosen, with its natural-log probability."""

    token_id: int
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The chosen token's natural-log probability and the best alternatives, best first."""

    token_id: int
    text: str
    logprob: float
    top: tuple[TokenAlternative, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of an answer. Text that may still become a stop sequence is held back.

    `made` is when, in seconds of the monotonic clock: a client that reads slowly takes it later.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    made: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of an answer that ended by itself; token counts are in tokens.

    Attributes:
        cached_tokens: of the prompt, those whose keys and values were there from an earlier request.
        queued_s: seconds from submission until the request first began to run.
        first_token_s: seconds from submission until its first token.
    """

    reason: FinishReason
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    stop_sequence: str | None = None
    queued_s: float = field(default=0.0, compare=False)
    first_token_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of an answer that could not be completed; `message` may be shown to the client."""

    message: str


EngineEvent = TextDelta | Finished | Failed


class EngineError(Exception):
    """Base of what `Engine.generate` raises before its first event."""


class OverloadedError(EngineError):
    """The queue is full. `retry_after` is in seconds, `reason` is a word for metrics."""

    def __init__(self, message: str, *, retry_after: int, reason: str = "queue_full") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.reason = reason


class PromptTooLongError(EngineError):
    """Prompt and answer do not fit into the model's context."""


class IntentUnavailableError(EngineError):
    """The start-up self-test showed that this worker can't keep the intent's promise."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is served. Lengths are in tokens.

    Attributes:
        digest: `sha256:…` over the base model's weights and configuration.
        anchor: the knowledge anchor applied to it, where there is one.
        lora: `sha256:…` over the adapter merged into it, where there is one.
        kernels: names the libraries' code that computes it.
        router: `sha256:…` of the file that steers sampling, where there is one.
    """

    name: str
    digest: str
    created: int
    max_model_len: int
    vocab_size: int
    supports_tools: bool
    dtype: str
    device: str
    anchor: Anchor | None = None
    lora: str | None = None
    kernels: str = ""
    router: str | None = None


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """What clients have asked of the engine so far, and what its slots did; only grows.

    Attributes:
        received: requests put into the queue.
        served: requests that left a slot, for whatever reason.
        busy_slot_seconds: the integral over time of the requests that hold a slot.
        waiting_request_seconds: the integral over time of the requests in the queue.
        served_slot_seconds: how long the requests that left a slot had held it, together; a request that
            has to give its slot up for a while leaves it more than once, but is served once.
    """

    received: int = 0
    served: int = 0
    busy_slot_seconds: float = 0.0
    waiting_request_seconds: float = 0.0
    served_slot_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RepeatCounts:
    """Deterministic answers that were asked for again, by how they came out."""

    same: int = 0
    different: int = 0


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot for metrics and health.

    Attributes:
        running: clients' requests that hold a slot.
        waiting: clients' requests in the queue.
        slots: requests that can run at once.
        steps: engine loop turns so far; liveness is that this, or `idle`, moves.
        idle: whether there is nothing to do for clients.
        busy_share: tokens scheduled / tokens schedulable over the last 15 s, in [0, 1].
        busy_share_seconds: the integral of the busy share over time so far.
        last_step_age_s: seconds since the loop last turned while it had work; 0 when it has none.
        load: what clients have asked so far, without the engine's own work.
        repeats: deterministic answers that were asked for again, which counts in nothing else.
        sampler_second_passes: rows so far whose filters needed a second walk over the head.
        kv_pages: pages of the KV cache.
        kv_pages_used: pages that requests hold.
        kv_pages_cached: pages that no request holds and that keep a prompt's beginning for later ones.
        preemptions: requests so far whose pages were taken away to be computed again later.
        prefix_query_tokens: tokens so far of the prompts that began to run.
        prefix_hit_tokens: of those, the ones that an earlier request had computed.
    """

    running: int
    waiting: int
    slots: int
    steps: int
    idle: bool
    busy_share: float
    busy_share_seconds: float
    last_step_age_s: float
    load: LoadCounts
    repeats: RepeatCounts = field(default_factory=RepeatCounts)
    sampler_second_passes: int = 0
    kv_pages: int = 0
    kv_pages_used: int = 0
    kv_pages_cached: int = 0
    preemptions: int = 0
    prefix_query_tokens: int = 0
    prefix_hit_tokens: int = 0


class ChatEncoder(Protocol):
    """Renders a conversation with the model's own chat template.

    Messages are mappings with `role` and `content` (text), and for tools also `tool_calls`,
    `tool_call_id` or `name`, as chat templates of the field expect them.
    """

    def encode_chat(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> tuple[int, ...]:
        """Token ids of the rendered conversation with the generation prompt.

        Raises:
            TextTooLongError: it can't fit into the context.
            ValueError: it can't be rendered.
        """
        ...

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Token ids of plain text, without template, for `/v1/completions`."""
        ...


class Engine(Protocol):
    """What the server needs of an engine."""

    @property
    def info(self) -> ModelInfo:
        """What is served."""
        ...

    @property
    def encoder(self) -> ChatEncoder:
        """The served model's tokenizer and chat template."""
        ...

    @property
    def fingerprint(self) -> str:
        """Names everything a deterministic answer depends on: weights, engine, dtype, kernels, hardware."""
        ...

    @property
    def unavailable_intents(self) -> Mapping[Intent, str]:
        """Intents the start-up self-test ruled out, each with the reason."""
        ...

    def generate(self, request: GenerationRequest) -> AsyncGenerator[EngineEvent]:
        """Yields deltas, then exactly one `Finished` or `Failed`.

        Closing the generator (or cancelling its task) frees the request's slot within one step.

        Raises:
            OverloadedError: at once, where the queue is full.
            PromptTooLongError: prompt plus `max_tokens` exceed `info.max_model_len`.
            IntentUnavailableError: the intent is in `unavailable_intents`.
        """
        ...

    def check_room(self, client: str) -> None:
        """Refuses at once what `generate` would refuse for want of a place, before a prompt is tokenised.

        Raises:
            OverloadedError: the queue, or the client's share of it, is full.
        """
        ...

    def stats(self) -> EngineStats:
        """A snapshot for metrics and health; cheap and thread-safe."""
        ...
