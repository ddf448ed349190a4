"""Asks one side: the Messages API of a revision's Service, as any client would."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self, cast

import httpx2

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.golden.items import Item

BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, 529})
LONGEST_PAUSE_S: Final = 10.0
SHOWN_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question: its text, or why there is none."""

    text: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Manners:
    """How a side is asked.

    Attributes:
        concurrency: questions at once.
        timeout_s: for one try.
        tries: of one question, where the side is busy or can't be reached.
        key: API key; None without.
    """

    concurrency: int
    timeout_s: float
    tries: int
    key: bytes | None = None


class Side:
    """One revision behind its URL; close it by leaving its context."""

    def __init__(
        self, url: str, manners: Manners, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        headers = {b"anthropic-version": b"2026-10-21"}
        if manners.key is not None:
            headers[b"x-api-key"] = manners.key
        # A proxy of the environment has no business between a Job and a Service.
        self._http = httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=manners.timeout_s, transport=transport, trust_env=False
        )
        self._manners = manners
        self._places = asyncio.Semaphore(manners.concurrency)
        self._model: str | None = None
        self._asking_model = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def answers(self, items: Sequence[Item], intent: Intent) -> list[Answer]:
        """Every item's answer, in their order."""
        return list(await asyncio.gather(*(self._answer(item, intent) for item in items)))

    async def _answer(self, item: Item, intent: Intent) -> Answer:
        async with self._places:
            try:
                body = {
                    "model": await self._served_model(),
                    "max_tokens": item.max_tokens,
                    "messages": [{"role": "user", "content": item.prompt}],
                }
                headers = {"anthropic-sampling-intent": intent.value}
                response = await self._send("POST", "/v1/messages", json=body, headers=headers)
                return Answer("".join(block["text"] for block in response["content"]))
            except _NoAnswerError as error:
                return Answer(error=_one_line(str(error))[:SHOWN_CHARS])
            except (LookupError, TypeError):
                return Answer(error="the answer is no message")

    async def _served_model(self) -> str:
        """The one model that a pool serves, asked once."""
        async with self._asking_model:
            if self._model is None:
                listed = await self._send("GET", "/v1/models")
                self._model = str(listed["data"][0]["id"])
        return self._model

    async def _send(self, method: str, path: str, **more: Any) -> Mapping[str, Any]:
        problem = ""
        for _ in range(self._manners.tries):
            try:
                response = await self._http.request(method, path, **more)
            except httpx2.TimeoutException:
                raise _NoAnswerError(f"no answer within {self._manners.timeout_s:g} s") from None
            except httpx2.RequestError as error:
                problem, pause = f"{type(error).__name__}: {error}", 1.0
            else:
                if response.status_code not in BUSY:
                    return _content(response)
                problem, pause = f"{response.status_code}: busy", _pause(response)
            await asyncio.sleep(pause)
        raise _NoAnswerError(f"{problem}, {self._manners.tries} times")


class _NoAnswerError(Exception):
    """A question stays without an answer; the message says why."""


def _content(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        content: Any = response.json()
    except (ValueError, RecursionError):
        content = None
    if response.status_code != HTTPStatus.OK:
        try:
            told = content["error"]["message"]
        except (KeyError, TypeError):
            told = response.reason_phrase
        raise _NoAnswerError(f"{response.status_code}: {told}")
    if not isinstance(content, dict):
        raise _NoAnswerError("the answer is not JSON")
    return cast("Mapping[str, Any]", content)


def _one_line(text: str) -> str:
    """What a side says, without line breaks and a terminal's control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _pause(response: httpx2.Response) -> float:
    """What the side asks for, within reason."""
    try:
        return min(LONGEST_PAUSE_S, max(0.1, float(response.headers.get("retry-after", "1"))))
    except ValueError:
        return 1.0
