"""Closing a connection whose client is still sending, so that it gets to see its answer."""

import asyncio
from collections.abc import Callable
from typing import Any

from zerolayer_worker.server import limits


class LingeringTransport(asyncio.Transport):
    """A transport whose `close` ends the answer first and throws away what still comes, within bounds.

    To close a socket with bytes in it resets the connection, and a reset takes the answer from the client.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, unread: Callable[[], bool]
    ) -> None:
        """Wraps a transport.

        Args:
            transport: the socket's.
            loop: the event loop, for the bound in time.
            unread: says whether the client may be sending still.
        """
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._unread = unread
        self._discarded = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def lingering(self) -> bool:
        """Whether the answer is over and the client's end is awaited."""
        return self._timer is not None

    def discard(self, count: int) -> None:
        """Counts bytes thrown away, and closes when they are too many."""
        self._discarded += count
        if self._discarded > limits.MAX_DISCARDED_BYTES:
            self._transport.abort()

    def lost(self) -> None:
        """The connection is gone; nothing is left to wait for."""
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Closes at once, or as soon as the client ends, sends too much or takes too long."""
        if self.is_closing():
            return
        if not self._unread():
            self._transport.close()
            return
        self._timer = self._loop.call_later(limits.LINGER_S, self._transport.abort)
        self._transport.write_eof()
        self._transport.resume_reading()

    def is_closing(self) -> bool:
        """Whether the connection's use is over."""
        return self.lingering or self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends bytes; none behind the answer's end."""
        if not self.lingering:
            self._transport.write(data)

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """Stops reading, but not behind the answer's end."""
        if not self.lingering:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads on."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The socket and its addresses."""
        return self._transport.get_extra_info(name, default)
