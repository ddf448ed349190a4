"""The serving port's application."""

import logging
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from zerolayer_worker.server.completions.routes import CompletionsRoutes
from zerolayer_worker.server.context import Call, Serving
from zerolayer_worker.server.envelope import Envelope
from zerolayer_worker.server.errors import ApiError
from zerolayer_worker.server.messages.routes import MessagesRoutes
from zerolayer_worker.server.models_route import ModelsRoutes

_log = logging.getLogger(__name__)


def serving_app(serving: Serving) -> ASGIApp:
    """Builds the application of both protocols."""
    messages, completions, models = MessagesRoutes(serving), CompletionsRoutes(serving), ModelsRoutes(serving)
    routes = [
        Route("/v1/messages", messages.create, methods=["POST"]),
        Route("/v1/messages/count_tokens", messages.count_tokens, methods=["POST"]),
        Route("/v1/chat/completions", completions.chat, methods=["POST"]),
        Route("/v1/completions", completions.complete, methods=["POST"]),
        Route("/v1/models", models.list, methods=["GET"]),
        Route("/v1/models/{model:path}", models.get, methods=["GET"]),
    ]

    async def refused(request: Request, error: Exception) -> JSONResponse:
        return _refused(serving, request, error)

    app = Starlette(
        routes=routes,
        exception_handlers={ApiError: refused, HTTPException: refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return Envelope(app, serving, frozenset(route.path for route in routes))


def _refused(serving: Serving, request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, ApiError):
        if error.reason is not None:
            serving.metrics.rejected.labels(error.reason).inc()
        return _answer(request, error)
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path[:200]
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return _answer(request, ApiError(405, f"{request.method} is not allowed on {path}"), allowed)
    return _answer(request, ApiError(status, f"There is no route {request.method} {path}"))


async def _failed(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
    """A fault of ours; Starlette raises it again, and the server logs it."""
    return _answer(request, ApiError(500, "internal error; the request id names it in the log"))


def _answer(request: Request, error: ApiError, headers: dict[str, str] | None = None) -> JSONResponse:
    call = Call.of(request.scope)
    body = error.render(call.protocol, call.request_id)
    return JSONResponse(body, status_code=error.status, headers={**(headers or {}), **error.headers()})
