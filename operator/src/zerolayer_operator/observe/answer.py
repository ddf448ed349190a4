"""Bodies of HTTP answers, never longer than expected."""

import aiohttp


async def bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body of an answer.

    Raises:
        ValueError: It has more than `limit` bytes; no more than that are read.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise ValueError(f"the answer has more than {limit} bytes")
    return bytes(body)
