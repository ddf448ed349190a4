"""The operator's small HTTP servers: probes on one port, metrics on another.

They run on the event loop that does the work, so that an answer also proves that it turns.
"""

import dataclasses
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler
from prometheus_client.aiohttp import make_aiohttp_handler

from zerolayer_operator.health import Heartbeat, Verdict
from zerolayer_operator.settings import Settings

_UNAVAILABLE = 503


@asynccontextmanager
async def probes_and_metrics(settings: Settings, heartbeat: Heartbeat) -> AsyncGenerator[None]:
    """Serves `/healthz` and `/readyz` on the health port and `/metrics` on the metrics port.

    Raises:
        OSError: A port is taken.
    """
    async with AsyncExitStack() as stack:
        for app, port in (
            (health_app(heartbeat), settings.health_port),
            (metrics_app(), settings.metrics_port),
        ):
            await stack.enter_async_context(served(app, settings.bind_host, port))
        yield


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record is about our own doing, not about what somebody sends to a port that is no HTTP."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


_log = logging.getLogger(__name__)
_log.addFilter(_is_ours)


@asynccontextmanager
async def served(app: web.Application, host: str | None, port: int) -> AsyncGenerator[None]:
    """Serves an application on a port of a host, or of every address of the pod.

    Raises:
        OSError: The port is taken.
    """
    runner = web.AppRunner(app, access_log=None, logger=_log, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()


def health_app(heartbeat: Heartbeat) -> web.Application:
    """Answers probes with what `heartbeat` says: 200, or 503 and the reason."""
    app = _app()
    app.router.add_get("/healthz", _probe(heartbeat.alive))
    app.router.add_get("/readyz", _probe(heartbeat.ready))
    return app


def metrics_app() -> web.Application:
    """Answers `/metrics` from the default registry."""
    app = _app()
    app.router.add_get("/metrics", make_aiohttp_handler())
    return app


def _probe(judge: Callable[[], Verdict]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(_: web.Request) -> web.Response:
        verdict = judge()
        return web.json_response(dataclasses.asdict(verdict), status=200 if verdict.ok else _UNAVAILABLE)

    return handle


def _app() -> web.Application:
    return web.Application(middlewares=[close_afterwards])


@web.middleware
async def close_afterwards(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Ends the connection: kopf waits for every open task, a kept-alive connection's too, when it stops."""
    try:
        response = await handler(request)
    except web.HTTPException as refusal:
        refusal.force_close()
        raise
    response.force_close()
    return response
