"""One connection's HTTP/1.1, with bounds on the work that a request's framing can cost."""

from typing import Any

import h11

from zerolayer_worker.server import limits


class BoundedConnection(h11.Connection):
    """h11's state machine; it refuses bodies of crumbs, and keeps no connection whose body went unread.

    Attributes:
        refusal: what is wrong with a request that was refused here; None where h11 refused it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.refusal: str | None = None
        self._small_chunks = 0

    @property
    def unread(self) -> bool:
        """Whether the client may still be sending what nobody will look at."""
        return self.their_state in (h11.SEND_BODY, h11.ERROR)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event of what was received.

        Every chunk is an event, which takes about as long to handle whether it holds a byte or 8 KiB.

        Raises:
            RemoteProtocolError: it is not HTTP, or the body has too many small chunks.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._small_chunks = 0
        elif isinstance(event, h11.Data) and event.chunk_start and event.chunk_end:
            self._small_chunks += len(event.data) < limits.SMALL_CHUNK_BYTES
            if self._small_chunks > limits.MAX_SMALL_CHUNKS:
                self.refusal = (
                    f"The request body has more than {limits.MAX_SMALL_CHUNKS} chunks of less than"
                    f" {limits.SMALL_CHUNK_BYTES} bytes; send it with a Content-Length, or in larger chunks"
                )
                raise h11.RemoteProtocolError(self.refusal)
        return event

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Writes an event; an answer ahead of its request's end is the connection's last, and says so."""
        if isinstance(event, h11.Response) and self.unread:
            names = {name for name, _ in event.headers}
            if b"connection" not in names:
                event = h11.Response(
                    status_code=event.status_code,
                    headers=[*event.headers, (b"connection", b"close")],
                    http_version=event.http_version,
                    reason=event.reason,
                )
        return super().send_with_data_passthrough(event)
