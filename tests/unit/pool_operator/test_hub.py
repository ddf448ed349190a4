"""Resolving a model's revision, against a small HTTP server in the place of the hub."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from zerolayer_operator.observe.hub import HubResolver, UnresolvedError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
async def hub() -> AsyncIterator[str]:
    async def revision(request: web.Request) -> web.Response:
        if request.match_info["revision"] == "secret" and request.headers.get("Authorization") != "Bearer t":
            return web.Response(status=401)
        known = {"main": COMMIT, "secret": COMMIT, "a/b": COMMIT}
        wanted = request.match_info["revision"]
        odd = {"broken": {}, "list": ["sha"], "nothing": {"sha": None}, "flag": {"sha": "--dest=/etc"}}
        if wanted in odd:
            return web.json_response(odd[wanted])
        return web.json_response({"sha": known[wanted]}) if wanted in known else web.Response(status=404)

    application = web.Application()
    application.router.add_get("/api/models/{owner}/{name}/revision/{revision}", revision)
    server = TestServer(application)
    await server.start_server()
    yield str(server.make_url("/"))
    await server.close()


@pytest.mark.parametrize(
    ("revision", "token"), [("main", None), ("secret", "t"), ("a/b", None)], ids=["open", "gated", "slash"]
)
async def test_revision_becomes_a_commit(hub: str, revision: str, token: str | None) -> None:
    assert await HubResolver(hub)("owner/name", revision, token) == COMMIT


async def test_commit_is_never_asked_for() -> None:
    assert await HubResolver("http://127.0.0.1:1")("owner/name", COMMIT, None) == COMMIT


@pytest.mark.parametrize("revision", ["nowhere", "secret", "broken", "list", "nothing", "flag"])
async def test_answer_that_is_none_says_what_to_do(hub: str, revision: str) -> None:
    with pytest.raises(UnresolvedError, match="name a commit"):
        await HubResolver(hub)("owner/name", revision, None)


async def test_hub_that_cannot_be_reached_says_what_to_do() -> None:
    with pytest.raises(UnresolvedError, match="let the operator reach it"):
        await HubResolver("http://127.0.0.1:1")("owner/name", "main", None)
