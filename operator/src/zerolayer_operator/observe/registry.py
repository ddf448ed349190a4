"""Asks registries which digest an image's tag stands for: only those that the installation allows.

Whoever makes a pool chooses its images. So that nobody can aim the operator at other services, it asks listed
hosts alone, follows no redirect, and fetches tokens from listed hosts alone.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import aiohttp
from pydantic import BaseModel
from yarl import URL

from zerolayer_operator.api.images import DOCKER_HUB, TaggedImage, has_digest, tagged_image
from zerolayer_operator.observe.answer import bounded

TIMEOUT_S: Final = 10.0
"""Longest time for one image, everything included."""

PAUSES_S: Final = (0.2, 0.6)
"""Waits between attempts: a registry that is away for a moment would cost a revision its digests for good."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE: Final = re.compile(r'Bearer\s+(?P<parameters>\w+="[^"]*"(?:\s*,\s*\w+="[^"]*")*)', re.IGNORECASE)
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_TOKEN_LIMIT: Final = 64 * 1024
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_MANIFESTS: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_HUB: Final = (URL("https://registry-1.docker.io"), URL("https://auth.docker.io"))

_Origin = tuple[str, str | None, int | None]


class UnpinnedError(Exception):
    """A tag's digest can't be found out; the message says why, and what to do where something can be done."""


class PinTag(Protocol):
    """Finds the digest that an image's tag stands for."""

    async def __call__(self, image: str) -> str:
        """The reference with its digest.

        Raises:
            UnpinnedError: It can't be found out.
        """
        ...


class _BusyError(Exception):
    """The registry may answer if it is asked again."""


class _Grant(BaseModel):
    """What a token service answers; which of the names it uses is its own choice."""

    token: str = ""
    access_token: str = ""


class Registries:
    """The registries that may be asked.

    Args:
        allowed: Their hosts, as images name them, with ``http://`` before those that speak no TLS.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        bases = dict(_entry(item) for item in allowed)
        self._origins = {_origin(url) for url in bases.values()}
        if DOCKER_HUB in bases:
            # Docker Hub answers, and hands out tokens, under other names than images have.
            bases[DOCKER_HUB] = _HUB[0]
            self._origins |= {_origin(url) for url in _HUB}
        self._bases = bases

    async def __call__(self, image: str) -> str:
        """The reference with its digest; one that has a digest is left alone.

        Raises:
            UnpinnedError: The registry is not listed, or gives no digest within ten seconds.
        """
        if has_digest(image):
            return image
        name = tagged_image(image)
        if name is None:
            raise UnpinnedError("it is no reference to an image")
        base = self._bases.get(name.registry)
        if base is None:
            raise UnpinnedError(
                f"{name.registry} is not among the registries that the operator may ask (chart value "
                "registries)"
            )
        try:
            async with asyncio.timeout(TIMEOUT_S), aiohttp.ClientSession(trust_env=True) as session:
                return f"{image}@{await self._patiently(session, base, name)}"
        except (_BusyError, aiohttp.ClientError, OSError, ValueError) as error:
            said = str(error) if isinstance(error, _BusyError) else f"can't be asked ({type(error).__name__})"
            raise UnpinnedError(f"{name.registry} {said}") from error

    async def _patiently(self, session: aiohttp.ClientSession, base: URL, name: TaggedImage) -> str:
        for pause in PAUSES_S:
            try:
                return await self._ask(session, base, name)
            except (_BusyError, aiohttp.ClientError, OSError):
                await asyncio.sleep(pause)
        return await self._ask(session, base, name)

    async def _ask(self, session: aiohttp.ClientSession, base: URL, name: TaggedImage) -> str:
        url = base.joinpath("v2", *name.repository.split("/"), "manifests", name.tag)
        status, headers = await _head(session, url, {})
        if status == _UNAUTHORIZED:
            token = await self._token(session, name, headers.get("WWW-Authenticate", ""))
            status, headers = await _head(session, url, {"Authorization": f"Bearer {token}"})
        _check(status, name.registry)
        digest = headers.get("Docker-Content-Digest", "")
        if _DIGEST.fullmatch(digest) is None:
            raise UnpinnedError(f"{name.registry} answers without a digest")
        return digest

    async def _token(self, session: aiohttp.ClientSession, name: TaggedImage, challenge: str) -> str:
        """A token as anybody gets it, from where the registry says."""
        found = _CHALLENGE.search(challenge)
        asked: dict[str, str] = dict(_PARAMETER.findall(found["parameters"])) if found is not None else {}
        if "realm" not in asked:
            raise UnpinnedError(f"{name.registry} asks for credentials, and the operator has none")
        realm = URL(asked["realm"])
        if _origin(realm) not in self._origins:
            raise UnpinnedError(
                f"{name.registry} sends to {realm.host} for a token, which is not among the registries that "
                "the operator may ask (chart value registries)"
            )
        query = {"scope": f"repository:{name.repository}:pull"}
        if "service" in asked:
            query["service"] = asked["service"]
        async with session.get(realm.update_query(query), allow_redirects=False) as response:
            _check(response.status, str(realm.host))
            grant = _Grant.model_validate_json(await bounded(response, _TOKEN_LIMIT))
        return grant.token or grant.access_token


async def _head(
    session: aiohttp.ClientSession, url: URL, headers: Mapping[str, str]
) -> tuple[int, Mapping[str, str]]:
    wanted = {"Accept": _MANIFESTS, **headers}
    async with session.head(url, headers=wanted, allow_redirects=False) as response:
        return response.status, response.headers


def _check(status: int, host: str) -> None:
    if status >= _SERVER_ERROR or status == _TOO_MANY:
        raise _BusyError(f"answers {status}")
    if status != _OK:
        raise UnpinnedError(f"{host} answers {status}")


def _entry(text: str) -> tuple[str, URL]:
    """A registry's name in images, and where it is asked."""
    scheme, _, host = text.rpartition("://")
    return host.lower(), URL(f"{scheme or 'https'}://{host}")


def _origin(url: URL) -> _Origin:
    return url.scheme, url.host, url.port
