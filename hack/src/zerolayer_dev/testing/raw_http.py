"""An HTTP server that a test can have say anything, in any order and at any pace, or nothing at all."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Answer = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked.

    Attributes:
        target: Path and query as they came.
        headers: With names in small letters.
    """

    target: str
    headers: dict[str, str] = field(default_factory=dict[str, str])


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Serves on the loopback address, one question per connection, and yields the port."""
    open_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(await _request(reader), writer)
            writer.close()
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(handle(reader, writer))
        open_now[task] = writer
        task.add_done_callback(lambda _: open_now.pop(task).transport.abort())

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
        await asyncio.sleep(0)  # for the transports to close
        await server.wait_closed()


def response(body: bytes, status: int = 200, **headers: str) -> bytes:
    """A whole answer."""
    head = [f"HTTP/1.1 {status} Said", f"content-length: {len(body)}", "connection: close"]
    head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*head, "", ""]).encode() + body


def says(content: bytes) -> Answer:
    """Says always the same."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return answer


def drips(content: bytes, pause_s: float) -> Answer:
    """Says it byte by byte, with pauses that no timeout of a socket minds."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for byte in content:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(pause_s)

    return answer


async def says_nothing(_request: Request, _writer: asyncio.StreamWriter) -> None:
    """Takes the question and never answers."""
    await asyncio.Event().wait()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    return Request(head[0].split(" ")[1], {name.lower(): value.strip() for name, _, value in pairs})
