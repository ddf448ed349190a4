"""ASGI responses that generate: one that streams and one that does not."""

import asyncio
from contextlib import aclosing

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from zerolayer_worker.engine.api import Finished, GenerationRequest, TextDelta
from zerolayer_worker.server import limits
from zerolayer_worker.server.answer import AnswerFormat
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.errors import ApiError
from zerolayer_worker.server.generation import Meter, admitted, collect
from zerolayer_worker.server.supervision import ClientGoneError, CutOffError, supervise

SSE_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


def shutting_down() -> ApiError:
    """What an answer ends with that is still open when the drain's time is over."""
    return ApiError(
        503, "the worker is shutting down before the answer was complete; try again", retry_after=1
    )


class GeneratedAnswer:
    """Generates one answer; an ASGI application, as Starlette's responses are."""

    def __init__(
        self,
        serving: Serving,
        request: GenerationRequest,
        answer: AnswerFormat,
        meter: Meter,
        *,
        stream: bool,
    ) -> None:
        self._serving = serving
        self._request = request
        self._format = answer
        self._meter = meter
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers; a client that goes away ends the generation at once.

        Raises:
            ApiError: before the answer's first byte.
        """
        respond = self._streamed if self._stream else self._whole
        try:
            await respond(scope, receive, send)
        except ClientGoneError:
            self._meter.gone()
        except ApiError as error:
            self._meter.failed(error)
            raise

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = collect(self._serving.engine, self._request, self._meter)
        try:
            answer = await supervise(work, receive, self._serving.lifecycle.cut)
        except CutOffError:
            self._serving.metrics.cut_streams.inc()
            raise shutting_down() from None
        await JSONResponse(self._format.body(answer))(scope, receive, send)

    async def _streamed(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        stream = _EventStream(send)
        try:
            await supervise(
                self._produce(stream), receive, self._serving.lifecycle.cut, lambda: self._ping(stream)
            )
        except CutOffError:
            self._serving.metrics.cut_streams.inc()
            error = shutting_down()
        except ApiError as failure:
            error = failure
        else:
            return
        if not stream.started:
            raise error
        if error.reason is not None:
            self._serving.metrics.rejected.labels(error.reason).inc()
        self._meter.failed(error)
        await stream.write(self._format.error(error))
        await stream.close()

    async def _produce(self, stream: "_EventStream") -> None:
        async with aclosing(admitted(self._serving.engine, self._request)) as events:
            async for event in events:
                match event:
                    case None:
                        self._meter.accepted()
                        await stream.start(self._format.start())
                    case TextDelta():
                        self._meter.delta(event)
                        await stream.write(self._format.delta(event))
                    case Finished():
                        await stream.write(self._format.finish(event))
                        self._meter.finished(event)
                        await stream.close()
                        return
        raise ApiError(500, "the engine ended the answer early", reason="internal")

    async def _ping(self, stream: "_EventStream") -> None:
        if stream.silent_for() >= limits.PING_INTERVAL_S / 2:
            await stream.write(self._format.ping())


class _EventStream:
    """The sending side of a stream of server-sent events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()
        self.started = False
        self._closed = False

    def silent_for(self) -> float:
        """Seconds since something was written."""
        return self._clock() - self._last

    async def start(self, events: bytes) -> None:
        self.started = True
        await self._bounded({"type": "http.response.start", "status": 200, "headers": list(SSE_HEADERS)})
        await self.write(events)

    async def write(self, events: bytes) -> None:
        if events and self.started and not self._closed:
            await self._bounded({"type": "http.response.body", "body": events, "more_body": True})
            self._last = self._clock()

    async def close(self) -> None:
        self._closed = True
        await self._bounded({"type": "http.response.body", "body": b"", "more_body": False})

    async def _bounded(self, message: dict[str, object]) -> None:
        """A client that does not read for long counts as gone, so that it can't hold a slot."""
        try:
            async with asyncio.timeout(limits.WRITE_TIMEOUT_S):
                await self._send(message)
        except TimeoutError:
            raise ClientGoneError from None
