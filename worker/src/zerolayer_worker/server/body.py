"""Reading a request's body within bounds of size and time, and making a model of it."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from zerolayer_worker.server import limits
from zerolayer_worker.server.errors import ApiError, Protocol
from zerolayer_worker.server.validation import ModelT, parse_json, validate


async def read_model(request: Request, model: type[ModelT], protocol: Protocol) -> ModelT:
    """Reads, decodes and validates a body; a large one off the event loop, where streams and probes go on.

    Raises:
        ApiError: 400, 408, 413 or 415.
    """
    body = await _read_in_time(request)
    if len(body) <= limits.INLINE_BYTES:
        return validate(model, parse_json(body), protocol)
    return await asyncio.to_thread(lambda: validate(model, parse_json(body), protocol))


async def _read_in_time(request: Request) -> bytes:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise ApiError(
            415, "content-encoding: compressed request bodies are not supported", param="content-encoding"
        )
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT_S):
            return await _read(request)
    except TimeoutError:
        raise ApiError(408, f"The request body did not arrive within {limits.BODY_TIMEOUT_S:.0f} s") from None
    except ClientDisconnect:
        raise ApiError(400, "The client went away while sending its request") from None


async def _read(request: Request) -> bytes:
    kept = bytearray()
    async for part in request.stream():
        kept += part
        if len(kept) > limits.MAX_BODY_BYTES:
            raise ApiError(413, f"The request body exceeds {limits.MAX_BODY_BYTES} bytes")
    return bytes(kept)
