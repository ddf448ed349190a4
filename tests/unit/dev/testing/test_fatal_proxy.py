"""A client dies of its calls, and is not heard any more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.serialization import Encoding

from zerolayer_dev.cluster.pki import Authority, kubeconfig
from zerolayer_dev.testing.fatal_proxy import Call, FatalProxy, Moment

POD = "/api/v1/namespaces/test/pods/p?limit=1"
WATCH = "/api/v1/namespaces/test/pods?watch=true"
OK, UNHEARD = 200, 503


class ApiServer:
    """Notes what it is asked.

    Attributes:
        asked: what has reached it.
        unwatched: set when nobody reads a watch any more.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.unwatched = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.raw_path)
        if "watch" not in request.query:
            return web.Response()
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"{}\n")
                await asyncio.sleep(0.01)
        finally:
            self.unwatched.set()


class Stage:
    """A client that dies where a test says.

    Attributes:
        server: the API server.
        fatal: the moment of which the client dies, once.
    """

    def __init__(self, folder: Path, server: ApiServer, url: str) -> None:
        self.server = server
        self.fatal: Moment | None = None
        self._source, self._path = folder / "source", folder / "client"
        authority = Authority("test").certificate.public_bytes(Encoding.PEM)
        self._source.write_text(yaml.safe_dump(kubeconfig("test", url, authority, b"", b"")))
        self.proxy = FatalProxy(self._source, self._is_fatal, self.begin_life)

    @property
    def url(self) -> str:
        """Where the client's present life goes."""
        return yaml.safe_load(self._path.read_text())["clusters"][0]["cluster"]["server"]

    def begin_life(self) -> None:
        self.proxy.begin_life(self._source, self._path)

    def _is_fatal(self, call: Call, moment: Moment, *, alive: bool) -> bool:
        if not alive or moment is not self.fatal:
            return False
        self.fatal = None
        return call.path == POD


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    application, server = web.Application(), ApiServer()
    application.router.add_get("/{path:.*}", server.answer)
    async with TestServer(application) as served:
        made = Stage(tmp_path, server, str(served.make_url("/")))
        async with made.proxy.serve():
            made.begin_life()
            yield made


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_calls_are_passed_on_as_they_are(stage: Stage, client: aiohttp.ClientSession) -> None:
    assert (await client.get(stage.url + POD)).status == OK
    assert stage.server.asked == [POD]


@pytest.mark.parametrize(("moment", "asked"), [(Moment.BEFORE, []), (Moment.AFTER, [POD])])
async def test_who_dies_of_a_call_does_not_hear_of_it(
    stage: Stage, client: aiohttp.ClientSession, moment: Moment, asked: list[str]
) -> None:
    stage.fatal = moment
    assert (await client.get(stage.url + POD)).status == UNHEARD
    assert stage.server.asked == asked
    assert (await client.get(stage.url + POD)).status == OK


async def test_the_dead_are_not_heard(stage: Stage, client: aiohttp.ClientSession) -> None:
    dead = stage.url
    stage.begin_life()
    stage.fatal = Moment.BEFORE

    assert (await client.get(dead + POD)).status == UNHEARD
    assert (stage.server.asked, stage.fatal) == ([], Moment.BEFORE)


async def test_a_watch_ends_with_its_life(stage: Stage, client: aiohttp.ClientSession) -> None:
    watch = await client.get(stage.url + WATCH)
    assert await watch.content.readline() == b"{}\n"
    stage.begin_life()

    async with asyncio.timeout(10):
        await stage.server.unwatched.wait()
