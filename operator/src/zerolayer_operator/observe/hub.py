"""Resolves a revision of a Hugging Face repository to a commit."""

import re
from typing import Final, Protocol
from urllib.parse import quote

import aiohttp

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_TIMEOUT_S: Final = 10.0
_REMEDY: Final = "or name a commit (40 hexadecimal digits) as spec.model.source.huggingFace.revision"


class UnresolvedError(Exception):
    """A revision can't be resolved; the message says why and what to do."""


class ResolveCommit(Protocol):
    """Finds the commit that a branch, tag or commit of a repository stands for."""

    async def __call__(self, repo: str, revision: str, token: str | None) -> str:
        """The commit.

        Raises:
            UnresolvedError: There is no such revision, or it can't be asked for.
        """
        ...


class HubResolver:
    """Asks the hub; never for what already is a commit.

    Args:
        endpoint: Address of the hub. It comes from the operator's own environment, so that no author of a
            pool can aim the operator at another service.
    """

    def __init__(self, endpoint: str = "https://huggingface.co") -> None:
        self._endpoint = endpoint.rstrip("/")

    async def __call__(self, repo: str, revision: str, token: str | None) -> str:
        """The commit.

        Raises:
            UnresolvedError: There is no such revision, or the hub can't be reached.
        """
        if _COMMIT.fullmatch(revision):
            return revision
        url = f"{self._endpoint}/api/models/{quote(repo)}/revision/{quote(revision, safe='')}"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.get(url, headers=headers) as response,
            ):
                if response.status != 200:  # noqa: PLR2004 - HTTP's own number
                    raise UnresolvedError(
                        f"{self._endpoint} answers {response.status} for revision {revision} of {repo}; "
                        f"check repo, revision and tokenSecretRef, {_REMEDY}"
                    )
                return _commit((await response.json())["sha"])
        except (TimeoutError, aiohttp.ClientError, OSError, KeyError, TypeError, ValueError) as error:
            raise UnresolvedError(
                f"{self._endpoint} can't be asked for revision {revision} of {repo} "
                f"({type(error).__name__}); let the operator reach it, {_REMEDY}"
            ) from error


def _commit(sha: str) -> str:
    """The commit; a mirror that answers with anything else must not get it into a worker's arguments."""
    if not _COMMIT.fullmatch(sha):
        raise ValueError("the hub's answer is no commit")
    return sha
