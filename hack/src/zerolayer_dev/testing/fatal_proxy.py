"""A proxy before an API server whose client dies of its calls: just before one is passed on, or just after.

The client is killed with SIGKILL before a call reaches the API server, or once that has answered and before
the client hears of it. Each of its lives has an address of its own: what an earlier one has sent and nobody
has passed on yet is lost with it.
"""

import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol, Self, cast

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

_OWN_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LARGEST: Final = 4 << 20


class Moment(StrEnum):
    """Where a client dies of a call."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the API server.

    Attributes:
        method: of the request.
        path: with the query.
        body: as sent; empty where it is no JSON object.
        status: of the answer; 0 before there is one.
    """

    method: str
    path: str
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 0

    @property
    def writes(self) -> bool:
        """Whether it is to change something."""
        return self.method in _WRITES

    @property
    def watches(self) -> bool:
        """Whether its answer lasts."""
        return "watch=" in self.path

    @property
    def renews(self) -> bool:
        """Whether it is about a Lease, which is renewed by the clock."""
        return "/leases" in self.path


class IsFatal(Protocol):
    """Whether a client dies at a moment of a call."""

    def __call__(self, call: Call, moment: Moment, *, alive: bool) -> bool:
        """Tells of one that is alive. A dead one's call may still be answered."""
        ...


class FatalProxy:
    """Passes calls on, and asks of each whether its client dies.

    Args:
        kubeconfig: of the API server; clients bring their own tokens.
        is_fatal: asked at each moment of each call.
        strike: kills the client, begins another life, and starts the client in it.
    """

    def __init__(self, kubeconfig: Path, is_fatal: IsFatal, strike: Callable[[], None]) -> None:
        document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        (cluster,) = (item["cluster"] for item in document["clusters"])
        self._target: str = cluster["server"].rstrip("/")
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._trust = ssl.create_default_context(cadata=authority)
        self._is_fatal = is_fatal
        self._strike = strike
        self._life = 0
        self._watches: set[aiohttp.ClientResponse] = set()
        self._wrote_at = time.monotonic()
        self.url = ""
        self.failures: list[BaseException] = []
        """What went wrong in the test's own parts, which a client would take for a broken API server."""

    def begin_life(self, source: Path, path: Path) -> None:
        """Writes the kubeconfig of the client's next life to `path`, with the credentials of another one.

        Whoever goes by an earlier one is dead.
        """
        self._life += 1
        # The API server would keep them open until there is something to tell.
        for watch in self._watches:
            watch.close()
        document = yaml.safe_load(source.read_text(encoding="utf-8"))
        for item in document["clusters"]:
            item["cluster"] = {"server": f"{self.url}/{self._life}"}
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        path.chmod(0o600)

    @property
    def idle_s(self) -> float:
        """Seconds since anything but a Lease was written."""
        return time.monotonic() - self._wrote_at

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Self]:
        """Serves on a free port of this machine."""
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_route("*", r"/{life:\d+}/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                host, port = runner.addresses[0][:2]
                self.url = f"http://{host}:{port}"
                yield self
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        named = request.match_info["life"]
        content = await request.read()
        call = Call(request.method, request.raw_path.removeprefix(f"/{named}"), _object(content))
        if self._dies(int(named), call, Moment.BEFORE):
            return _unheard()
        return await self._pass_on(request, int(named), call, content)

    def _dies(self, life: int, call: Call, moment: Moment) -> bool:
        """Whether a client is dead, by this moment of this call if not before."""
        alive = life == self._life
        if not alive and moment is Moment.BEFORE:
            return True
        try:
            if self._is_fatal(call, moment, alive=alive):
                self._strike()
        except Exception as error:  # noqa: BLE001 - the test looks at them
            self.failures.append(error)
        return life != self._life

    async def _pass_on(
        self, request: web.Request, life: int, call: Call, content: bytes
    ) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _OWN_HEADERS}
        url = self._target + call.path
        async with self._session.request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            # Nothing is added to what the client says.
            skip_auto_headers=("Accept-Encoding", "Content-Type", "User-Agent"),
            data=content or None,
            timeout=aiohttp.ClientTimeout(),
        ) as answer:
            told = {key: value for key, value in answer.headers.items() if key.lower() not in _OWN_HEADERS}
            answered = Call(call.method, call.path, call.body, answer.status)
            if call.watches:
                if self._dies(life, answered, Moment.AFTER):
                    return _unheard()
                return await self._stream(request, answer, told)
            body = await answer.read()
        if call.writes and not call.renews:
            self._wrote_at = time.monotonic()
        if self._dies(life, answered, Moment.AFTER):
            return _unheard()
        return web.Response(status=answer.status, body=body, headers=told)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        self._watches.add(answer)
        try:
            # A watch ends with its client.
            with suppress(ConnectionError, aiohttp.ClientError):
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
        finally:
            self._watches.discard(answer)
        return response


def _unheard() -> web.Response:
    """What a dead client is told."""
    return web.Response(status=web.HTTPServiceUnavailable.status_code)


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
