"""What both protocols check and build before the engine sees a request."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zerolayer_worker.common.errors import TextTooLongError
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import ChatEncoder, GenerationRequest, ModelInfo, SamplingParams
from zerolayer_worker.server.conversation import Conversation
from zerolayer_worker.server.errors import ApiError, invalid
from zerolayer_worker.server.intent_policy import SamplingFields, check_ranges, refuse_sampling_fields


async def encode(render: Callable[[], tuple[int, ...]], field: str) -> tuple[int, ...]:
    """Tokenises off the event loop: a long prompt takes long enough to hold up other clients' streams.

    Raises:
        ApiError: 400 where the chat template refuses the conversation, nothing is left of it, or it can't
            fit into the context.
    """
    try:
        ids = await asyncio.to_thread(render)
    except TextTooLongError as error:
        raise invalid(field, str(error), code="context_length_exceeded") from None
    except ValueError as error:
        raise invalid(field, f"the model's chat template refuses this conversation: {error}") from None
    if not ids:
        raise invalid(field, "must not be empty")
    return ids


@dataclass(frozen=True, slots=True)
class EncodedChat:
    """A conversation's token ids, and what is remembered of it: how it began, and whether it goes on."""

    ids: tuple[int, ...]
    opening: int
    continued: bool


async def encode_chat(encoder: ChatEncoder, translate: Callable[[], Conversation]) -> EncodedChat:
    """Translates and tokenises a conversation, both off the event loop.

    Raises:
        ApiError: as `encode` and `translate` do.
    """
    translated: list[Conversation] = []

    def render() -> tuple[int, ...]:
        conversation = translate()
        translated.append(conversation)
        return encoder.encode_chat(conversation.messages, conversation.tools)

    ids = await encode(render, "messages")
    return EncodedChat(ids, translated[0].opening(), translated[0].continued)


def answer_length(
    info: ModelInfo, prompt_tokens: int, wanted: int | None, field: str, prompt_field: str
) -> int:
    """How many tokens the answer may have: what was asked for, or what is left of the context.

    Raises:
        ApiError: 400 where prompt and answer do not fit.
    """
    room = info.max_model_len - prompt_tokens
    code = "context_length_exceeded"
    if room < 1:
        message = f"prompt is too long: {prompt_tokens} tokens > {info.max_model_len - 1} maximum"
        raise invalid(prompt_field, message, code=code)
    if wanted is None:
        return room
    if wanted > room:
        message = (
            f"{wanted} > {room}, which is what the prompt's {prompt_tokens} tokens leave"
            f" of the model's context of {info.max_model_len} tokens"
        )
        raise invalid(field, message, code=code)
    return wanted


def sampling(
    intent: Intent | None,
    fields: SamplingFields,
    *,
    max_temperature: float,
    seed: int | None = None,
    logprobs: int | None = None,
) -> SamplingParams:
    """Sampling of a request in either mode.

    Raises:
        ApiError: 400 for a sampling parameter beside an intent, or outside of its range.
    """
    if intent is not None:
        refuse_sampling_fields(fields)
        return SamplingParams(intent=intent, seed=seed, logprobs=logprobs)
    check_ranges(fields, max_temperature)
    return SamplingParams(
        temperature=1.0 if fields.temperature is None else float(fields.temperature),
        top_p=1.0 if fields.top_p is None else float(fields.top_p),
        top_k=fields.top_k or 0,
        min_p=float(fields.min_p or 0.0),
        seed=seed,
        logprobs=logprobs,
        repetition_penalty=1.0 if fields.repetition_penalty is None else float(fields.repetition_penalty),
        presence_penalty=float(fields.presence_penalty or 0.0),
        frequency_penalty=float(fields.frequency_penalty or 0.0),
    )


def generation_request(
    request_id: str,
    prompt_ids: tuple[int, ...],
    max_tokens: int,
    sampling_params: SamplingParams,
    stop_sequences: Sequence[str],
    *,
    client: str,
) -> GenerationRequest:
    """The engine's view; duplicate stop sequences are dropped."""
    return GenerationRequest(
        request_id=request_id,
        prompt_ids=prompt_ids,
        max_tokens=max_tokens,
        sampling=sampling_params,
        stop_sequences=tuple(dict.fromkeys(stop_sequences)),
        client=client,
    )


def check_token_ids(info: ModelInfo, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Refuses token ids outside the vocabulary.

    Raises:
        ApiError: 400.
    """
    # What follows the context's end is too long in any case, and may be millions.
    if any(token >= info.vocab_size for token in ids[: info.max_model_len]):
        raise ApiError(400, f"prompt: token ids must be below {info.vocab_size}", param="prompt")
    return ids
