"""The page's HTTP server, on the pod's own loopback address.

Nobody in the cluster reaches it but through `kubectl port-forward`, which the API server grants or refuses,
so there is no further authentication. What is left is another site in the browser of somebody who forwards
the port: it cannot read the answers, which are for no other origin, and gets none under a name of its own
that it points at the loopback address, because only that address's own names are answered.
"""

import dataclasses
import math
import re
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.page.history import History
from zerolayer_operator.serve import close_afterwards
from zerolayer_operator.settings import Settings
from zerolayer_operator.workqueue import PoolKey

HOST: Final = "127.0.0.1"

_OWN_HOST: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FILES: Final = {
    "index.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "charts.js": "text/javascript",
    "dom.js": "text/javascript",
    "format.js": "text/javascript",
    "list.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "vendor/uPlot.iife.min.js": "text/javascript",
    "vendor/uPlot.min.css": "text/css",
}

Answer = Callable[[web.Request], Awaitable[web.Response]]


def page_app(settings: Settings, history: History, leader: Callable[[], str]) -> web.Application:
    """Answers with the page and with the figures that it shows.

    Args:
        settings: The names of this replica and its namespace, and the port that is told to be forwarded.
        history: What is known of pools; empty on a replica that does not lead.
        leader: Says which replica leads; an empty string where that is not known.
    """
    app = web.Application(middlewares=[close_afterwards, _own_names_only])
    app.on_response_prepare.append(_add_headers)
    app.router.add_get("/api/v1/pools", _pools(settings, history, leader))
    app.router.add_get("/api/v1/pools/{namespace}/{name}", _pool(history))
    folder = files("zerolayer_operator.page") / "static"
    for name, kind in _FILES.items():
        path = "/" if name == "index.html" else f"/{name}"
        app.router.add_get(path, _file(folder.joinpath(name).read_bytes(), kind))
    return app


def _pools(settings: Settings, history: History, leader: Callable[[], str]) -> Answer:
    async def handle(_: web.Request) -> web.Response:
        return web.json_response(
            {
                "name": settings.pod_name,
                "namespace": settings.pod_namespace,
                "port": settings.page_port,
                "leader": leader(),
                "leading": leader() == settings.pod_name,
                "pools": [_named(key, figures) for key, figures in history.newest()],
            }
        )

    return handle


def _pool(history: History) -> Answer:
    async def handle(request: web.Request) -> web.Response:
        key = PoolKey(request.match_info["namespace"], request.match_info["name"])
        newest, series = history.newest_of(key), history.series(key)
        if newest is None or series is None:
            return web.json_response({"error": "nothing is known of this pool"}, status=404)
        return web.json_response({"newest": _named(key, newest)} | dataclasses.asdict(series))

    return handle


def _named(key: PoolKey, figures: Figures) -> dict[str, Any]:
    """The figures of a pool as JSON can hold them: what is no number is not known."""
    plain = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in dataclasses.asdict(figures).items()
    }
    return dataclasses.asdict(key) | plain


def _file(content: bytes, kind: str) -> Answer:
    charset = None if kind == "image/svg+xml" else "utf-8"

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type=kind, charset=charset)

    return handle


@web.middleware
async def _own_names_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses a request under any name but the loopback address's own; see the module."""
    if not _OWN_HOST.fullmatch(request.headers.get("Host", "")):
        return web.json_response(
            {"error": "this page is for `kubectl port-forward` and a browser at localhost"},
            status=web.HTTPMisdirectedRequest.status_code,
        )
    return await handler(request)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
