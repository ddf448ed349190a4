"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse

from zerolayer_worker.server import prepare
from zerolayer_worker.server.answer import AnswerInfo
from zerolayer_worker.server.body import read_model
from zerolayer_worker.server.clients import client_of
from zerolayer_worker.server.context import Call, Serving
from zerolayer_worker.server.errors import Protocol
from zerolayer_worker.server.genai_metrics import Operation
from zerolayer_worker.server.generation import Meter
from zerolayer_worker.server.intent_policy import SamplingFields, check_headers, decide_intent
from zerolayer_worker.server.messages.format import MessagesFormat
from zerolayer_worker.server.messages.schema import CountTokensRequest, MessagesRequest, Prompt
from zerolayer_worker.server.messages.translate import conversation
from zerolayer_worker.server.respond import GeneratedAnswer

MAX_TEMPERATURE = 1.0
PromptT = TypeVar("PromptT", bound=Prompt)


class MessagesRoutes:
    """The Messages API's endpoints."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def create(self, request: Request) -> GeneratedAnswer:
        """Answers a conversation."""
        call = Call.of(request.scope)
        body = await self._read(request, MessagesRequest)
        call.intent = decide_intent(request.headers, None, self._serving.policy)
        fields = SamplingFields(body.temperature, body.top_p, body.top_k)
        logprobs = 0 if body.return_logprobs else None
        sampling = prepare.sampling(call.intent, fields, max_temperature=MAX_TEMPERATURE, logprobs=logprobs)
        self._serving.check_model(body.model)
        client = client_of(request.headers, (body.metadata or {}).get("user_id"))
        self._serving.check_room(client)
        chat = await self._encode(body)
        self._serving.note_intent(call, chat)
        prompt_ids = chat.ids
        info = self._serving.engine.info
        length = prepare.answer_length(info, len(prompt_ids), body.max_tokens, "max_tokens", "messages")
        generation = prepare.generation_request(
            call.request_id, prompt_ids, length, sampling, body.stop_sequences, client=client
        )
        about = AnswerInfo.now(call.request_id, info.name, self._serving.engine.fingerprint, len(prompt_ids))
        return GeneratedAnswer(
            self._serving,
            generation,
            MessagesFormat(about, logprobs=body.return_logprobs),
            Meter(self._serving.metrics, "/v1/messages", call, Operation("chat", info.name), generation),
            stream=body.stream,
        )

    async def count_tokens(self, request: Request) -> JSONResponse:
        """Counts a conversation's tokens as `create` would."""
        body = await self._read(request, CountTokensRequest)
        self._serving.check_model(body.model)
        return JSONResponse({"input_tokens": len((await self._encode(body)).ids)})

    async def _read(self, request: Request, model: type[PromptT]) -> PromptT:
        self._serving.check_key(request.headers)
        self._serving.check_load()
        check_headers(request.headers)
        return await read_model(request, model, Protocol.MESSAGES)

    async def _encode(self, body: Prompt) -> prepare.EncodedChat:
        engine = self._serving.engine
        translate = partial(conversation, body, supports_tools=engine.info.supports_tools)
        return await prepare.encode_chat(engine.encoder, translate)
