"""Steady load on a pool from clients that notice everything that goes wrong.

Nothing is retried here: official SDKs would hide a lost request behind a second one. The one exception
is a connection that was refused, where `retry_refused` says so: such a request never reached a worker.
"""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

import httpx

from zerolayer_dev.testing.waiting import wait_for

_TIMEOUT = httpx.Timeout(120, connect=10)


@dataclass(frozen=True, slots=True)
class Client:
    """How one client behaves: whether it streams, and whether it keeps its connection."""

    streams: bool
    keeps_alive: bool

    def __str__(self) -> str:
        """Returns both in words."""
        return f"{'stream' if self.streams else 'whole'}/{'keep-alive' if self.keeps_alive else 'fresh'}"


EVERY_KIND = tuple(Client(*flags) for flags in itertools.product((False, True), repeat=2))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request. Times are monotonic seconds; `failure` is empty where the answer is complete.

    Attributes:
        refused: connections refused before the request reached a worker.
        tokens: tokens of the answer.
        revision: that answered, where the worker said so.
    """

    client: Client
    started: float
    ended: float
    failure: str
    refused: int
    tokens: int
    revision: str = ""


class Load:
    """Clients that ask one request after the other for as long as the `with` block runs.

    Leaving the block lets every request end by itself, so that stopping loses nothing.
    A pool that is asked for a `key` gets it with every request.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        clients: Iterable[Client] = EVERY_KIND,
        max_tokens: int = 12,
        retry_refused: bool = False,
        key: str = "",
        prompt: str = "name three rivers",
        intent: str = "",
    ) -> None:
        self._url = url.rstrip("/") + "/v1/messages"
        self._key = {"x-api-key": key} if key else {}
        self._model = model
        self._clients = tuple(clients)
        self._max_tokens = max_tokens
        self._retry_refused = retry_refused
        self._prompt = prompt
        self._intent = intent
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load")
        self._attempts: list[Attempt] = []
        self._running: dict[int, float] = {}

    def __enter__(self) -> Self:
        """Starts the clients."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets every client end its present request."""
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Has every client end after its present request, and waits for none."""
        self._stop.set()

    @property
    def attempts(self) -> list[Attempt]:
        """The requests that have ended."""
        return list(self._attempts)

    @property
    def failures(self) -> list[str]:
        """What went wrong, by client, with the second of the load it began and ended in."""
        origin = min((attempt.started for attempt in self.attempts), default=0.0)
        return [
            f"{attempt.client}, second {attempt.started - origin:.1f} to {attempt.ended - origin:.1f}: "
            + attempt.failure
            for attempt in self.attempts
            if attempt.failure
        ]

    def in_flight(self) -> int:
        """Returns how many requests are under way now."""
        return len(self._running)

    def wait_for_more(self, count: int, *, seconds: float) -> None:
        """Waits until `count` further requests were answered.

        Raises:
            StillWaitingError: they were not within `seconds`.
        """
        wanted = len(self._attempts) + count
        wait_for(
            lambda: len(self._attempts), until=lambda n: n >= wanted, seconds=seconds, what=f"{count} answers"
        )

    async def _run(self) -> None:
        await asyncio.gather(*(self._client(number, client) for number, client in enumerate(self._clients)))

    async def _client(self, number: int, client: Client) -> None:
        async with _connection() as kept:
            for turn in itertools.count():
                if self._stop.is_set():
                    return
                self._running[number] = started = time.monotonic()
                failure, refused, answer = await self._until_accepted(client, kept, f"{number}.{turn}")
                ended = time.monotonic()
                del self._running[number]
                self._attempts.append(
                    Attempt(client, started, ended, failure, refused, answer.tokens, answer.revision)
                )

    async def _until_accepted(
        self, client: Client, kept: httpx.AsyncClient, label: str
    ) -> tuple[str, int, "_Answer"]:
        refused = 0
        while True:
            try:
                if client.keeps_alive:
                    return "", refused, await self._ask(kept, client, label)
                async with _connection() as fresh:
                    return "", refused, await self._ask(fresh, client, label)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if not self._retry_refused or self._stop.is_set():
                    return f"never connected: {error!r}", refused, _NONE
                refused += 1
                await asyncio.sleep(0.1)
            except (httpx.HTTPError, _BadAnswerError) as error:
                return repr(error), refused, _NONE

    async def _ask(self, connection: httpx.AsyncClient, client: Client, label: str) -> "_Answer":
        body = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            "stream": client.streams,
            "messages": [{"role": "user", "content": f"Request {label}: {self._prompt}."}],
        }
        headers = {
            "anthropic-version": "2023-06-01",
            "anthropic-sampling-intent": self._intent or ("creative" if client.streams else "deterministic"),
            **self._key,
        }
        async with connection.stream("POST", self._url, json=body, headers=headers) as response:
            if response.status_code != httpx.codes.OK:
                await response.aread()
                raise _BadAnswerError(f"status {response.status_code}: {response.text[:300]}")
            revision = response.headers.get("x-zero-layer-revision", "")
            if client.streams:
                return _Answer(await _streamed_tokens(response.aiter_lines()), revision)
            await response.aread()
            return _Answer(_whole_tokens(response.json()), revision)


class _Answer(NamedTuple):
    """What a complete answer is like."""

    tokens: int
    revision: str


_NONE = _Answer(0, "")


class _BadAnswerError(Exception):
    """The worker answered, but not completely."""


@asynccontextmanager
async def _connection() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False) as client:
        yield client


def _whole_tokens(answer: dict[str, object]) -> int:
    usage = answer.get("usage")
    if not answer.get("stop_reason") or not isinstance(usage, dict):
        raise _BadAnswerError(f"no stop reason or usage in {answer}")
    return int(usage["output_tokens"])


async def _streamed_tokens(lines: AsyncIterator[str]) -> int:
    """Returns the token count that `message_delta` reports.

    Raises:
        _BadAnswerError: the stream carried an error, or ended without `message_stop`.
    """
    tokens = 0
    kinds: list[str] = []
    async for line in lines:
        if not line.startswith("data: "):
            continue
        event = json.loads(line.removeprefix("data: "))
        kinds.append(event["type"])
        if event["type"] == "error":
            raise _BadAnswerError(f"stream ended with {event}")
        if event["type"] == "message_delta":
            tokens = int(event["usage"]["output_tokens"])
    if kinds[-1:] != ["message_stop"]:
        raise _BadAnswerError(f"stream truncated after {len(kinds)} events, the last {kinds[-1:]}")
    return tokens
