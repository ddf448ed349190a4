"""Uvicorn with bounds on slow clients and a drain that loses no request."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from zerolayer_worker.server import limits
from zerolayer_worker.server.framing import BoundedConnection
from zerolayer_worker.server.lingering import LingeringTransport
from zerolayer_worker.server.request_ids import new_request_id


class BoundedProtocol(H11Protocol, asyncio.BufferedProtocol):
    """HTTP/1.1 where request headers have to arrive in time, and idleness has an age.

    It reads into buffers of its own: their size bounds what one connection can ask of a turn of the loop,
    which the probes' port, streams and other clients share.
    """

    def __init__(self, *args: Any, identity: Sequence[tuple[bytes, bytes]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._identity = identity
        self.conn: BoundedConnection = BoundedConnection(h11.SERVER, limits.MAX_HEAD_BYTES)
        self._header_timer: asyncio.TimerHandle | None = None
        self._idle_since = self.loop.time()
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Starts the clock of the first request's headers."""
        self._lingering = LingeringTransport(transport, self.loop, lambda: self.conn.unread)
        super().connection_made(self._lingering)
        self._start_header_timer()

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002
        """Where the next read goes; idle connections hold no memory for it."""
        self._buffer = bytearray(limits.READ_BYTES)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Takes what was read."""
        data = bytes(memoryview(self._buffer)[:nbytes])
        self._buffer = bytearray()
        self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Headers that trickle in are bounded on every request of the connection."""
        if self._lingering.lingering:
            self._lingering.discard(len(data))
            return
        super().data_received(data)
        if self._answering():
            self._stop_header_timer()
        elif self._header_timer is None and not self.transport.is_closing():
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        self._stop_header_timer()
        self._lingering.lost()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From here on the connection is idle."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        begun, _ = self.conn.trailing_data
        if begun and not self._answering() and not self.transport.is_closing():
            self._start_header_timer()

    def send_400_response(self, msg: str) -> None:
        """Answers what is not HTTP in a shape that both protocols' clients can read."""
        if self._answering():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        message = self.conn.refusal or msg
        error = {"type": "invalid_request_error", "message": message, "param": None, "code": None}
        request_id = new_request_id()
        body = json.dumps({"type": "error", "error": error, "request_id": request_id}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"connection", b"close"),
            (b"content-length", str(len(body)).encode()),
            (b"request-id", request_id.encode()),
            (b"x-request-id", request_id.encode()),
            *self._identity,
        ]
        with contextlib.suppress(h11.LocalProtocolError):
            for event in (
                h11.Response(status_code=400, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def close_if_idle(self, age: float) -> None:
        """Closes the connection if nothing has happened on it for `age` seconds.

        Never right behind an answer: where its headers went out before the drain and could not say
        `Connection: close`, the client may be sending its next request already.
        """
        if not self._answering() and self.loop.time() - self._idle_since >= age:
            self.shutdown()

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: HTTP/1.1 lets a server ignore an upgrade, and its operator has nothing to install."""

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(limits.HEADER_TIMEOUT_S, self.transport.close)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to its owner."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Does nothing: two servers share the process, and the drain decides about signals."""
        yield

    def close_idle(self, age: float) -> None:
        """Closes connections idle for `age` seconds; one that a client is about to use is younger."""
        for connection in list(self.server_state.connections):
            cast("BoundedProtocol", connection).close_if_idle(age)


def build_server(app: ASGIApp, identity: Sequence[tuple[bytes, bytes]] = ()) -> Server:
    """A server for one of the two ports; `serve(sockets=[…])` starts it.

    Args:
        app: answers requests.
        identity: headers for what is no request, and is answered without the application.
    """
    config = uvicorn.Config(
        app,
        http=cast("type[BoundedProtocol]", partial(BoundedProtocol, identity=identity)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.KEEP_ALIVE_S,
    )
    return Server(config)


def bind(host: str, port: int) -> socket.socket:
    """Binds a port without listening yet, so that a conflict shows before the model is loaded.

    Raises:
        OSError: the address is in use or not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener
