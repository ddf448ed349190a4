"""Asks workers themselves how loaded they are."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from zerolayer_operator.observe.answer import bounded
from zerolayer_operator.observe.worker_metrics import WorkerCounters, WorkerMetricsError, read_counters

TIMEOUT_S: Final = 3.0
"""Longest time for one worker, everything included."""

CONCURRENCY: Final = 32
"""Workers that are asked at the same time, of all pools together."""

SHARE: Final = 8
"""Of these, workers of one pool: others' must not wait until very many that give no answer had their time."""

LIMIT_BYTES: Final = 256 * 1024

Told = TypeVar("Told")

_LONGEST_HEAD: Final = 64 * 1024
_MOST_ANSWERS: Final = 8
_PIECE: Final = 4096
"""Bytes that are looked at before it is counted again what came."""
_OK: Final = 200
_UNREACHED: Final = "let the operator reach the workers' operations port (NetworkPolicies, service mesh)"


class _Bounded(ResponseHandler):
    """A connection that is broken off once more came than one answer can have.

    Neither interim answers (100, 103) nor more answers than were asked for have any other end: a few dozen
    workers that tell nothing else would keep the event loop busy, and fill the memory, for as long as they
    are waited for.
    """

    _bytes = 0
    _answers = 0

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            self._bytes += len(piece)
            if self._answers > _MOST_ANSWERS or self._bytes > LIMIT_BYTES + _LONGEST_HEAD:
                if self.transport is not None:
                    # Not by a method of the protocol: who reads would not be told that there is no more.
                    self.transport.abort()
                return
            super().data_received(piece)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        self._answers += 1
        super().feed_data(data, size)


class _Connector(aiohttp.TCPConnector):
    """Makes such connections, and keeps none open: that would hold up a worker that is to go."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=CONCURRENCY, force_close=True)  # pyright: ignore[reportUnknownMemberType]
        self._factory = partial(_Bounded, loop)


class Scraper:
    """Reads workers' metrics from their operations ports, until it is closed.

    Args:
        port: The operations port.
        timeout_s: Longest time for one worker.
    """

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S) -> None:
        self._port = port
        self._timeout_s = timeout_s
        self._places = asyncio.Semaphore(CONCURRENCY)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Gives up all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def scrape(
        self, addresses: Iterable[str], *, first_tokens: bool = False
    ) -> dict[str, WorkerCounters | WorkerMetricsError]:
        """What the workers of a pool have counted, by their addresses, or why that is not known.

        Args:
            addresses: Of the workers.
            first_tokens: Whether their times to the first token are read too.
        """
        return await self.ask(addresses, partial(read_counters, first_tokens=first_tokens))

    async def ask(
        self, addresses: Iterable[str], read: Callable[[str], Told]
    ) -> dict[str, Told | WorkerMetricsError]:
        """What workers tell, by their addresses, or why that is not known.

        Args:
            addresses: Of the workers.
            read: Makes sense of a worker's metrics, or raises a `WorkerMetricsError`.
        """
        wanted, share = list(dict.fromkeys(addresses)), asyncio.Semaphore(SHARE)
        answers = await asyncio.gather(*(self._attempt(address, share, read) for address in wanted))
        return dict(zip(wanted, answers, strict=True))

    async def _attempt(
        self, address: str, share: asyncio.Semaphore, read: Callable[[str], Told]
    ) -> Told | WorkerMetricsError:
        try:
            async with share, self._places, asyncio.timeout(self._timeout_s):
                return read(await self._metrics(address))
        except WorkerMetricsError as error:
            return error
        except TimeoutError:
            return WorkerMetricsError(f"it gives no answer within {self._timeout_s:g} s; {_UNREACHED}")
        except (aiohttp.ClientError, OSError) as error:
            return WorkerMetricsError(f"it can't be asked ({type(error).__name__}); {_UNREACHED}")
        except ValueError as error:
            return WorkerMetricsError(f"{error}; check what answers on its operations port")

    async def _metrics(self, address: str) -> str:
        url = URL.build(scheme="http", host=address, port=self._port, path="/metrics")
        # A redirect could lead anywhere, and a compressed answer grow to any size.
        headers = {"Accept-Encoding": "identity"}
        async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
            if response.status != _OK:
                raise WorkerMetricsError(f"it answers {response.status}; check what answers there")
            return (await bounded(response, LIMIT_BYTES)).decode()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(asyncio.get_running_loop()),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session
