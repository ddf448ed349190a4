"""A Prometheus that lies: in front of a real one, whose answers it alters."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, Final

import aiohttp
from aiohttp import web

from zerolayer_operator.observe import load_query

_RATES: Final = frozenset(
    {
        load_query.ARRIVALS,
        load_query.BUSY,
        load_query.QUEUED,
        load_query.FINISHED,
        load_query.SERVICE,
        load_query.SHARE,
    }
)
SLOW_S: Final = 10.0


class Lie(Enum):
    """What is wrong with the answers."""

    NOTHING = "true"
    NAN = "NaN"
    SLOW = f"{SLOW_S:g} s late"
    MORE = "100 times more"
    LESS = "100 times less"


class PrometheusProxy:
    """Asks a real Prometheus and passes its answers on.

    Args:
        url: Where the real one is now.
    """

    def __init__(self, url: Callable[[], str]) -> None:
        self.lie = Lie.NOTHING
        self.address = ""
        """Where it is asked itself."""
        self._url = url

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serves on a free port of this machine."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        async with aiohttp.ClientSession() as self._session:
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                host, port = runner.addresses[0][:2]
                self.address = f"http://{host}:{port}"
                yield
            finally:
                await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.Response:
        lie = self.lie
        if lie is Lie.SLOW:
            await asyncio.sleep(SLOW_S)
        try:
            async with self._session.request(
                request.method,
                self._url() + request.path,
                params=request.query,
                data=await request.read(),
                headers={"content-type": request.headers.get("content-type", "")},
            ) as answer:
                status, body = answer.status, await answer.read()
        except aiohttp.ClientError:
            # As nobody answers there.
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)
        altered = _altered(body, lie) if status == web.HTTPOk.status_code else body
        return web.Response(status=status, body=altered, content_type="application/json")


def _altered(body: bytes, lie: Lie) -> bytes:
    if lie in {Lie.NOTHING, Lie.SLOW}:
        return body
    answer: dict[str, Any] = json.loads(body)
    for row in answer["data"]["result"]:
        if row["metric"].get("figure") in {None, *_RATES}:
            for pair in row.get("values", [row.get("value")]):
                pair[1] = _value(float(pair[1]), lie)
    return json.dumps(answer).encode()


def _value(value: float, lie: Lie) -> str:
    if lie is Lie.NAN:
        return "NaN"
    return str(value * (100 if lie is Lie.MORE else 0.01))
