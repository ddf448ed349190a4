"""Reading a request's body within bounds of size and time."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from zerolayer_worker.server import limits
from zerolayer_worker.server.errors import ApiError, JsonObject
from zerolayer_worker.server.validation import parse_json


async def read_json(request: Request) -> JsonObject:
    """Reads and parses a JSON object.

    Raises:
        ApiError: 400, 408, 413 or 415.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise ApiError(
            415, "content-encoding: compressed request bodies are not supported", param="content-encoding"
        )
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT_S):
            body = await _read(request)
    except TimeoutError:
        raise ApiError(408, f"The request body did not arrive within {limits.BODY_TIMEOUT_S:.0f} s") from None
    except ClientDisconnect:
        raise ApiError(400, "The client went away while sending its request") from None
    return parse_json(body)


async def _read(request: Request) -> bytes:
    """Reads the body; of one that is too large, enough that the client gets to see the refusal."""
    kept = bytearray()
    total = 0
    async for part in request.stream():
        total += len(part)
        if total > limits.MAX_DISCARDED_BYTES:
            break
        if total <= limits.MAX_BODY_BYTES:
            kept += part
        else:
            kept.clear()
    if total > limits.MAX_BODY_BYTES:
        raise ApiError(413, f"The request body exceeds {limits.MAX_BODY_BYTES} bytes")
    return bytes(kept)
