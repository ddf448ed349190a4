"""Bounds on what one client may ask of the process; every one has a test that crosses it."""

from typing import Final

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""A request body larger than this is a 413. A 256 k token prompt is about 1 MiB of text."""

MAX_DISCARDED_BYTES: Final = 32 * 1024 * 1024
"""How much is read and thrown away behind an answer that came before its request's end, so that the client
gets to see it; then the connection is reset."""

LINGER_S: Final = 5.0
"""Seconds such a client may go on sending, or may take to close its end."""

READ_BYTES: Final = 8 * 1024
"""What is read from a connection in one turn of the loop. It holds some 1400 chunks of one byte, which take
about 12 ms; other clients and the probes wait no longer for one that sends them."""

SMALL_CHUNK_BYTES: Final = 128
MAX_SMALL_CHUNKS: Final = 4096
"""Chunks of less than `SMALL_CHUNK_BYTES` in a request's body; with more it is a 400. Clients that stream a
body send some KiB a chunk."""

MAX_HEAD_BYTES: Final = 32 * 1024
"""A request line and its headers together; more is a 400."""

BODY_TIMEOUT_S: Final = 30.0
"""Seconds a client may take to send its body; then 408."""

HEADER_TIMEOUT_S: Final = 15.0
"""Seconds a fresh connection may take to send its first request's headers; then it is closed."""

KEEP_ALIVE_S: Final = 120
"""Seconds an idle connection is kept. Longer than the pools of the usual clients and gateways keep theirs
(5 to 90 s, the latter in Traefik and all that is written in Go), so that it is they who close and no request
meets a closing socket."""

WRITE_TIMEOUT_S: Final = 60.0
"""Seconds a streaming client may leave its receive window full; then it counts as gone."""

MAX_IN_FLIGHT: Final = 1024
"""Requests open at once, waiting ones included; more get 429 before their body is read. The engine's queue
is the limit users meet; this one bounds the memory of bodies on their way to it."""

MAX_STRUCTURE: Final = 100_000
"""Objects, lists and fields of a request's JSON together; more is a 413 before anything is decoded. A turn of
one text block has seven."""

MAX_BLOCKS: Final = 10_000
"""Content blocks of a request, those of all messages, tool results and the system prompt together; a text in
place of a list is one."""

INLINE_BYTES: Final = 64 * 1024
"""A body up to this size is decoded and validated at once; for a larger one other requests do not wait."""

MAX_STOP_SEQUENCES: Final = 16
MAX_STOP_SEQUENCE_CHARS: Final = 256
MAX_MESSAGES: Final = 10_000
MAX_FIELDS: Final = 200
"""Fields of one object of a request; every unknown one of fewer is an error that is collected."""

MAX_TOP_LOGPROBS: Final = 20

ADMISSION_S: Final = 1.0
"""Seconds a streamed answer waits for its first token before the headers go out without it. Refusals by
the engine are immediate, so they still become a status code."""

PING_INTERVAL_S: Final = 10.0
"""Seconds of silence after which a streamed answer sends a keep-alive."""

DRAIN_GRACE_S: Final = 5.0
"""Seconds between the start of a drain and its earliest end: endpoints need that long to spread."""
