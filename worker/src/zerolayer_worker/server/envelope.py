"""The serving port's outermost layer: request ids, common headers, requests in flight, log lines."""

import logging
import time
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zerolayer_worker.server.context import Call, Serving, protocol_of
from zerolayer_worker.server.request_ids import new_request_id

_log = logging.getLogger(__name__)


class Envelope:
    """ASGI middleware around the whole application, so that error answers get the headers too."""

    def __init__(self, app: ASGIApp, serving: Serving, routes: frozenset[str]) -> None:
        self._app = app
        self._serving = serving
        self._routes = routes
        self._common = [
            (b"x-zero-layer-fingerprint", serving.engine.fingerprint.encode()),
            *serving.identity,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        sent = Headers(scope=scope)
        request_id = new_request_id()
        trace = self._serving.tracing.begin(scope["method"], self._route(path), sent)
        call = Call(request_id, protocol_of(path, sent), moved=self._serving.moved(sent), trace=trace)
        scope.setdefault("state", {})["call"] = call
        status = 0

        async def send_enveloped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *self._headers(call)]}
            await send(message)

        with self._serving.lifecycle.request():
            try:
                await self._app(scope, receive, send_enveloped)
            finally:
                self._record(call, scope, status)

    def _headers(self, call: Call) -> list[tuple[bytes, bytes]]:
        request_id = call.request_id.encode()
        headers = [(b"request-id", request_id), (b"x-request-id", request_id), *self._common]
        if call.moved:
            headers.append((b"x-zero-layer-revision-changed", b"true"))
        if call.intent is not None:
            headers.append((b"x-anthropic-layer-zero", b"true"))
            headers.append((b"x-anthropic-sampling-intent", call.intent.value.encode()))
        if self._serving.lifecycle.draining:
            headers.append((b"connection", b"close"))
        return headers

    def _route(self, path: str) -> str:
        return path if path in self._routes else "other"

    def _record(self, call: Call, scope: Scope, status: int) -> None:
        """Counts and logs; 499 is a client that was gone before the answer's first byte."""
        path = self._route(scope["path"])
        self._serving.metrics.responses.labels(path, str(status or 499)).inc()
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            call.outcome = "error"
        if call.outcome is not None:
            self._serving.metrics.answers.labels(call.outcome).inc()
        call.trace.end(status or 499)
        _log.info(
            "request",
            extra={
                "request_id": call.request_id,
                "method": scope["method"],
                "route": path,
                "status": status or 499,
                "intent": call.intent,
                "seconds": round(time.monotonic() - call.started, 4),
            },
        )
