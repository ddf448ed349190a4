"""Where a request's body is decoded and validated."""

import threading
from typing import Annotated

import pytest
from pydantic import AfterValidator
from starlette.requests import Request
from starlette.types import Message

from zerolayer_worker.server import limits
from zerolayer_worker.server.body import read_model
from zerolayer_worker.server.errors import ApiError, Protocol
from zerolayer_worker.server.validation import Strict


def _thread(_text: str) -> str:
    return threading.current_thread().name


class Body(Strict):
    thread: Annotated[str, AfterValidator(_thread)]


async def read(content: bytes) -> Body:
    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    return await read_model(Request({"type": "http", "headers": []}, receive), Body, Protocol.MESSAGES)


async def test_only_a_large_body_is_worth_a_thread() -> None:
    here = threading.current_thread().name
    frame = len('{"thread":""}')
    assert (await read(b'{"thread":"%s"}' % (b"x" * (limits.INLINE_BYTES - frame)))).thread == here
    assert (await read(b'{"thread":"%s"}' % (b"x" * (limits.INLINE_BYTES - frame + 1)))).thread != here


async def test_a_large_body_is_refused_as_a_small_one() -> None:
    for size in (1, limits.INLINE_BYTES):
        with pytest.raises(ApiError, match="thread: Input should be a valid string") as caught:
            await read(b'{"thread":1}' + b" " * size)
        assert caught.value.status == 400
