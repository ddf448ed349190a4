"""Asking registries for digests, against small HTTP servers in their place that can also misbehave."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from zerolayer_operator.observe import registry
from zerolayer_operator.observe.registry import Registries, UnpinnedError

DIGEST = "sha256:" + "0123456789abcdef" * 4
OTHER_HOST = "http://127.0.0.2:1/token"
SCOPE = "repository:needs/token:pull"


MANIFESTS: dict[str, dict[str, Any]] = {
    "open/name": {"headers": {"Docker-Content-Digest": DIGEST}},
    "needs/password": {"status": 401, "headers": {"WWW-Authenticate": 'Basic realm="x"'}},
    "needs/strange": {"status": 401, "headers": {"WWW-Authenticate": "Bearer nothing"}},
    "moved/away": {"status": 307, "headers": {"Location": OTHER_HOST}},
    "busy/always": {"status": 429},
    "no/digest": {},
    "bad/digest": {"headers": {"Docker-Content-Digest": f"{DIGEST} --privileged"}},
}
"""What is answered for a repository."""

TOKENS: dict[str, dict[str, Any]] = {
    "moved": {"status": 302, "headers": {"Location": OTHER_HOST}},
    "empty": {"text": "{}"},
    "list": {"text": '["token"]'},
    "text": {"text": "token"},
    "lines": {"text": '{"token": "a\\r\\nHost: b"}'},
    "endless": {"text": "x" * 70_000},
    "refused": {"status": 403},
    "oauth": {"text": f'{{"access_token": "for {SCOPE}"}}'},
}
"""What is answered for a token, by a word in the realm."""


class Registry:
    """Answers as the tables say; a repository that needs a token gets it for the right scope."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.realm = ""
        self.url = URL()
        self.application = web.Application()
        self.application.router.add_head("/v2/{repository:.+}/manifests/{tag}", self._manifest)
        self.application.router.add_get("/token", self._token)

    async def _manifest(self, request: web.Request) -> web.Response:
        repository, tag = request.match_info["repository"], request.match_info["tag"]
        self.calls.append(f"HEAD {repository}:{tag}")
        assert "application/vnd.oci.image.index.v1+json" in request.headers["Accept"]
        if repository == "busy/once" and self.calls.count(self.calls[-1]) == 1:
            return web.Response(status=503)
        if repository == "needs/token" and request.headers.get("Authorization") != f"Bearer for {SCOPE}":
            challenge = f'Bearer realm="{self.realm}",service="the registry",scope="ignored"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        known = {"busy/once": MANIFESTS["open/name"], "needs/token": MANIFESTS["open/name"], **MANIFESTS}
        return web.Response(**known.get(repository, {"status": 404}))

    async def _token(self, request: web.Request) -> web.Response:
        self.calls.append(f"GET {request.path_qs}")
        assert (request.query["service"], request.query["scope"]) == ("the registry", SCOPE)
        granted = {"text": f'{{"token": "for {request.query["scope"]}"}}'}
        return web.Response(**TOKENS.get(request.query.get("answer", ""), granted))


async def started(application: web.Application) -> TestServer:
    server = TestServer(application)
    await server.start_server()
    return server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PAUSES_S", (0.0, 0.0))


@pytest.fixture
async def server() -> AsyncIterator[Registry]:
    """A registry that hands out tokens itself."""
    made = Registry()
    running = await started(made.application)
    made.url = running.make_url("/")
    made.realm = str(running.make_url("/token"))
    yield made
    await running.close()


def host(server: Registry) -> str:
    return server.url.authority


def asking(server: Registry, *others: str) -> Registries:
    return Registries([f"http://{host(server)}", *others])


async def pinned(server: Registry, repository: str, *others: str) -> str:
    return await asking(server, *others)(f"{host(server)}/{repository}")


@pytest.mark.parametrize("repository", ["open/name", "open/name:v1", "needs/token:1", "busy/once:1"])
async def test_tag_becomes_a_digest(server: Registry, repository: str) -> None:
    assert await pinned(server, repository) == f"{host(server)}/{repository}@{DIGEST}"


async def test_token_service_of_the_oauth_kind(server: Registry) -> None:
    server.realm += "?answer=oauth"
    assert (await pinned(server, "needs/token")).endswith(DIGEST)


async def test_token_service_elsewhere_must_be_allowed_too(server: Registry) -> None:
    elsewhere = Registry()
    running = await started(elsewhere.application)
    server.realm = str(running.make_url("/token"))
    try:
        with pytest.raises(UnpinnedError, match="chart value registries"):
            await pinned(server, "needs/token")
        assert elsewhere.calls == []

        found = await pinned(server, "needs/token", str(running.make_url("/").origin()))
    finally:
        await running.close()
    assert found.endswith(DIGEST)
    assert len(elsewhere.calls) == 1


@pytest.mark.parametrize(
    "realm",
    [
        OTHER_HOST,
        "https://{host}/token",
        "http://{host}@127.0.0.2:1/token",
        "/token",
        "file:///etc/passwd",
        "http://[no",
    ],
)
async def test_pool_cannot_steer_the_operator_by_a_realm(server: Registry, realm: str) -> None:
    server.realm = realm.format(host=host(server))
    with pytest.raises(UnpinnedError):
        await pinned(server, "needs/token")
    assert server.calls == ["HEAD needs/token:latest"]


async def test_image_with_a_digest_is_left_alone(server: Registry) -> None:
    image = f"{host(server)}/open/name:v1@{DIGEST}"
    assert await asking(server)(image) == image
    assert server.calls == []


@pytest.mark.parametrize(
    "image", ["{host}:1/open/name", "docker.io/library/name", "name", "localhost/{host}/open/name"]
)
async def test_registry_that_is_not_allowed_is_never_asked(server: Registry, image: str) -> None:
    with pytest.raises(UnpinnedError, match=r"chart value registries|no reference"):
        await asking(server)(image.format(host=host(server)))
    assert server.calls == []


async def test_without_registries_nothing_is_asked() -> None:
    with pytest.raises(UnpinnedError, match="chart value registries"):
        await Registries(())("ghcr.io/a/b:1")


@pytest.mark.parametrize(
    ("repository", "said", "asked"),
    [
        ("un/known", "answers 404", 1),
        ("moved/away", "answers 307", 1),
        ("no/digest", "without a digest", 1),
        ("bad/digest", "without a digest", 1),
        ("needs/password", "asks for credentials", 1),
        ("needs/strange", "asks for credentials", 1),
        ("busy/always", "answers 429", 3),
    ],
)
async def test_answer_that_holds_no_digest_says_why(
    server: Registry, repository: str, said: str, asked: int
) -> None:
    with pytest.raises(UnpinnedError, match=said):
        await pinned(server, repository)
    assert server.calls == [f"HEAD {repository}:latest"] * asked


@pytest.mark.parametrize("answer", ["moved", "list", "text", "lines", "endless", "refused"])
async def test_bad_token_ends_it(server: Registry, answer: str) -> None:
    server.realm += f"?answer={answer}"
    with pytest.raises(UnpinnedError):
        await pinned(server, "needs/token")
    assert len(server.calls) == 2


async def test_token_that_is_not_enough_is_not_fetched_again(server: Registry) -> None:
    server.realm += "?answer=empty"
    with pytest.raises(UnpinnedError, match="answers 401"):
        await pinned(server, "needs/token")
    assert len(server.calls) == 3


async def test_registry_that_is_away_is_told() -> None:
    with pytest.raises(UnpinnedError, match=r"127\.0\.0\.1:1 can't be asked"):
        await Registries(["http://127.0.0.1:1"])("127.0.0.1:1/a:1")


async def test_registry_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "TIMEOUT_S", 0.1)
    # The kernel takes the connection, and nobody ever accepts it.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(UnpinnedError, match="TimeoutError"):
            await Registries([f"http://{address}"])(f"{address}/a:1")


def test_docker_hub_is_asked_under_its_own_names() -> None:
    allowed = Registries(["docker.io"])
    assert allowed._bases == {"docker.io": URL("https://registry-1.docker.io")}
    assert ("https", "auth.docker.io", 443) in allowed._origins


@pytest.mark.parametrize(
    ("entry", "name", "url"),
    [
        ("GHCR.io", "ghcr.io", "https://ghcr.io"),
        ("r:5000", "r:5000", "https://r:5000"),
        ("https://r:444", "r:444", "https://r:444"),
        ("http://r", "r", "http://r"),
    ],
)
def test_entries_are_read(entry: str, name: str, url: str) -> None:
    assert Registries([entry])._bases == {name: URL(url)}
