"""`POST /v1/chat/completions` and `POST /v1/completions`."""

import dataclasses
from functools import partial
from typing import TypeVar

from starlette.requests import Request

from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.server import prepare
from zerolayer_worker.server.answer import AnswerInfo
from zerolayer_worker.server.body import read_model
from zerolayer_worker.server.clients import client_of
from zerolayer_worker.server.completions.format import ChatFormat, CompletionFormat
from zerolayer_worker.server.completions.schema import ChatRequest, Common, CompletionRequest
from zerolayer_worker.server.completions.translate import conversation
from zerolayer_worker.server.context import Call, Serving
from zerolayer_worker.server.errors import Protocol, invalid
from zerolayer_worker.server.genai_metrics import Operation
from zerolayer_worker.server.generation import Meter
from zerolayer_worker.server.intent_policy import SamplingFields, check_headers, decide_intent
from zerolayer_worker.server.respond import GeneratedAnswer

CommonT = TypeVar("CommonT", bound=Common)
DEFAULT_COMPLETION_TOKENS = 16
MAX_TEMPERATURE = 2.0
OPERATIONS = {"/v1/chat/completions": "chat", "/v1/completions": "text_completion"}


class CompletionsRoutes:
    """The OpenAI API's generating endpoints."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def chat(self, request: Request) -> GeneratedAnswer:
        """Answers a conversation."""
        call, body = await self._read(request, ChatRequest)
        sampling = self._sampling(request, call, body, _chat_logprobs(body))
        client = self._client(request, body, body.safety_identifier)
        info = self._serving.engine.info
        translate = partial(conversation, body, supports_tools=info.supports_tools)
        chat = await prepare.encode_chat(self._serving.engine.encoder, translate)
        self._serving.note_intent(call, chat)
        ids = chat.ids
        length = prepare.answer_length(info, len(ids), *_wanted(body), "messages")
        generation = prepare.generation_request(
            call.request_id, ids, length, sampling, body.stop, client=client
        )
        answer = ChatFormat(
            self._about(call, ids), logprobs=sampling.logprobs is not None, include_usage=_include_usage(body)
        )
        return self._answer("/v1/chat/completions", call, body, generation, answer)

    async def complete(self, request: Request) -> GeneratedAnswer:
        """Continues a text or a list of token ids."""
        call, body = await self._read(request, CompletionRequest)
        wanted = 0 if body.return_logprobs and body.logprobs is None else body.logprobs
        sampling = self._sampling(request, call, body, wanted)
        client = self._client(request, body)
        info = self._serving.engine.info
        ids = await self._prompt_ids(body.prompt)
        limit = DEFAULT_COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens
        length = prepare.answer_length(info, len(ids), limit, "max_tokens", "prompt")
        generation = prepare.generation_request(
            call.request_id, ids, length, sampling, body.stop, client=client
        )
        answer = CompletionFormat(
            self._about(call, ids), logprobs=sampling.logprobs is not None, include_usage=_include_usage(body)
        )
        return self._answer("/v1/completions", call, body, generation, answer)

    async def _prompt_ids(self, prompt: str | tuple[int, ...]) -> tuple[int, ...]:
        engine = self._serving.engine
        if isinstance(prompt, str):
            return await prepare.encode(lambda: engine.encoder.encode_text(prompt), "prompt")
        return prepare.check_token_ids(engine.info, prompt)

    async def _read(self, request: Request, model: type[CommonT]) -> tuple[Call, CommonT]:
        self._serving.check_key(request.headers)
        self._serving.check_load()
        check_headers(request.headers)
        body = await read_model(request, model, Protocol.OPENAI)
        if body.stream_options is not None and not body.stream:
            raise invalid("stream_options", "only allowed when stream is true")
        return Call.of(request.scope), body

    def _sampling(self, request: Request, call: Call, body: Common, logprobs: int | None) -> SamplingParams:
        """In zero-layer mode log-probabilities are absent unless `return_logprobs` asks for them."""
        call.intent = decide_intent(request.headers, body.intent, self._serving.policy)
        if call.intent is not None and not body.return_logprobs:
            logprobs = None
        fields = SamplingFields(
            **{field.name: getattr(body, field.name) for field in dataclasses.fields(SamplingFields)}
        )
        return prepare.sampling(
            call.intent, fields, max_temperature=MAX_TEMPERATURE, seed=body.seed, logprobs=logprobs
        )

    def _client(self, request: Request, body: Common, user: object = None) -> str:
        """Who asks, where the model is served and there is a place in the queue."""
        self._serving.check_model(body.model)
        client = client_of(request.headers, user or body.user)
        self._serving.check_room(client)
        return client

    def _about(self, call: Call, ids: tuple[int, ...]) -> AnswerInfo:
        engine = self._serving.engine
        return AnswerInfo.now(call.request_id, engine.info.name, engine.fingerprint, len(ids))

    def _answer(
        self,
        route: str,
        call: Call,
        body: Common,
        generation: GenerationRequest,
        answer: ChatFormat | CompletionFormat,
    ) -> GeneratedAnswer:
        operation = Operation(OPERATIONS[route], self._serving.engine.info.name)
        meter = Meter(self._serving.metrics, route, call, operation, generation)
        return GeneratedAnswer(self._serving, generation, answer, meter, stream=bool(body.stream))


def _include_usage(body: Common) -> bool:
    return body.stream_options is not None and body.stream_options.include_usage


def _chat_logprobs(body: ChatRequest) -> int | None:
    asked = bool(body.logprobs) or body.return_logprobs
    if body.top_logprobs is not None and not asked:
        raise invalid("top_logprobs", "logprobs must be true for top_logprobs to be used")
    return (body.top_logprobs or 0) if asked else None


def _wanted(body: ChatRequest) -> tuple[int | None, str]:
    """The answer's length and the field that named it."""
    if body.max_completion_tokens is None:
        return body.max_tokens, "max_tokens"
    if body.max_tokens not in (None, body.max_completion_tokens):
        raise invalid("max_tokens", "contradicts max_completion_tokens; send one of them")
    return body.max_completion_tokens, "max_completion_tokens"
