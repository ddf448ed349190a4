"""What a request's framing may cost the loop that both ports share, and answers ahead of a request's end."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import pytest

from zerolayer_worker.server import limits
from zerolayer_worker.server.auth import KeyRing

ENDLESS = 1 * 1024 * 1024
PER_TURN = limits.READ_BYTES // len(b"1\r\n \r\n") + 10
"""Events that one connection may cause in a turn of the loop: a read's chunks, a request's begin and end."""


class Work:
    """Counts what h11 parses, by turn of the loop."""

    def __init__(self) -> None:
        self._turn = 0
        self.by_turn = Counter[int]()

    async def count_turns(self) -> None:
        while True:
            self._turn += 1
            await asyncio.sleep(0)

    def event(self) -> None:
        self.by_turn[self._turn] += 1

    @property
    def most(self) -> int:
        return max(self.by_turn.values())


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    work = Work()
    next_event = h11.Connection.next_event

    def counted(self: h11.Connection) -> Any:
        if self.our_role is h11.SERVER:
            work.event()
        return next_event(self)

    monkeypatch.setattr(h11.Connection, "next_event", counted)
    turns = asyncio.create_task(work.count_turns())
    try:
        yield work
    finally:
        turns.cancel()


async def exchange(port: int, head: bytes, body: bytes) -> bytes:
    """Sends a request with all of its body, however early the answer; returns the answer to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(head + body)
            await writer.drain()

    sending = asyncio.create_task(send())
    async with asyncio.timeout(60):
        answer = await reader.read()
        await sending
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return answer


def request(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "host: x", *headers, "", ""]).encode()


POST = "POST /v1/messages"
WRONG_KEY = "x-api-key: wrong"
CHUNKED = "transfer-encoding: chunked"


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(b"1\r\n \r\n", id="of one byte"),
        pytest.param(b"1;a=b\r\n \r\n", id="with extensions"),
        pytest.param(
            b"%x\r\n%b\r\n" % (limits.SMALL_CHUNK_BYTES, b" " * limits.SMALL_CHUNK_BYTES), id="larger"
        ),
    ],
)
@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(request(POST, WRONG_KEY, CHUNKED), 401, id="wrong key"),
        pytest.param(request("POST /v1/nothing", CHUNKED), 404, id="no route"),
        pytest.param(request("DELETE /v1/messages", CHUNKED), 405, id="wrong method"),
        pytest.param(request("GET /v1/models", WRONG_KEY, CHUNKED), 401, id="a body where none belongs"),
    ],
)
async def test_endless_chunks_behind_an_answer_are_not_parsed(
    start: Any,
    engine: Any,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    head: bytes,
    status: int,
    chunk: bytes,
) -> None:
    (tmp_path / "alice").write_text("sk-alice")
    live = await start(engine, keys=KeyRing(tmp_path))
    with watched(monkeypatch) as work:
        answer = await exchange(live.port, head, chunk * (ENDLESS // len(chunk)))
    assert b" %d " % status in answer.partition(b"\r\n")[0]
    assert b"\r\nconnection: close\r\n" in answer.lower()
    assert answer.rstrip().endswith(b"}")
    assert work.most <= PER_TURN
    assert work.by_turn.total() <= 3 * PER_TURN
    await live.until(lambda: not live.server.server_state.connections)


@pytest.mark.parametrize("head", [request(POST, CHUNKED), request("POST /v1/completions", CHUNKED)])
async def test_a_body_of_crumbs_is_refused_with_the_remedy(
    live: Any, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    with watched(monkeypatch) as work:
        answer = await exchange(live.port, head, b"1\r\n \r\n" * (ENDLESS // 6))
    top, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in top.partition(b"\r\n")[0]
    assert b"\r\nconnection: close" in top
    assert "Content-Length" in json.loads(body)["error"]["message"]
    assert work.most <= PER_TURN
    assert work.by_turn.total() <= limits.MAX_SMALL_CHUNKS + 2 * PER_TURN
    await live.until(lambda: not live.server.server_state.connections)


async def test_what_is_not_read_at_all_is_bounded_too(
    start_ops: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain's route waits for requests in flight and never reads a body."""
    monkeypatch.setattr(limits, "DRAIN_GRACE_S", 0)
    ops = await start_ops()
    with watched(monkeypatch) as work, ops.lifecycle.request():
        answer = await exchange(
            ops.http.base_url.port, request("POST /drain", CHUNKED), b"1\r\n \r\n" * (ENDLESS // 6)
        )
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert work.by_turn.total() <= limits.MAX_SMALL_CHUNKS + 2 * PER_TURN


async def test_many_connections_leave_the_probe_its_turns(
    start: Any, engine: Any, start_ops: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, ops = await start(engine, keys=KeyRing(tmp_path)), await start_ops()
    body = b"1\r\n \r\n" * (ENDLESS // 6)
    head = request(POST, WRONG_KEY, CHUNKED)
    with watched(monkeypatch) as work:
        flood = [asyncio.create_task(exchange(live.port, head, body)) for _ in range(16)]
        assert (await ops.http.get("/healthz")).status_code == 200
        assert all(b" 401 " in answer for answer in await asyncio.gather(*flood))
    assert work.most <= 17 * PER_TURN
    assert work.by_turn.total() <= 17 * 3 * PER_TURN


async def test_a_body_of_as_many_small_chunks_as_are_allowed_is_read(live: Any) -> None:
    text = b'{"model": "fake-model", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}'
    body = text + b" " * (limits.MAX_SMALL_CHUNKS - len(text))
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    head = request(POST, CHUNKED, "connection: close")
    assert b" 200 " in (await exchange(live.port, head, chunks + b"0\r\n\r\n")).partition(b"\r\n")[0]
    assert (
        b" 400 " in (await exchange(live.port, head, chunks + b"1\r\n \r\n0\r\n\r\n")).partition(b"\r\n")[0]
    )


async def test_small_chunks_are_counted_for_each_request(live: Any) -> None:
    body = b"1\r\n \r\n" * (limits.MAX_SMALL_CHUNKS // 2 + 1) + b"0\r\n\r\n"
    first, last = request(POST, CHUNKED), request(POST, CHUNKED, "connection: close")
    answer = await exchange(live.port, first, body + last + body)
    assert answer.count(b"not valid JSON") == 2


@pytest.mark.parametrize("size", [1, 8 * limits.MAX_BODY_BYTES // 10])
async def test_an_answer_ahead_of_its_body_arrives_and_is_the_last(
    start: Any, engine: Any, tmp_path: Any, size: int
) -> None:
    """A client that sends its body after its headers, as most do, is not met by a reset."""
    live = await start(engine, keys=KeyRing(tmp_path))
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    async with asyncio.timeout(60):
        writer.write(request(POST, WRONG_KEY, f"content-length: {size}"))
        top = await reader.readuntil(b"\r\n\r\n")
        writer.write(b" " * size)
        await writer.drain()
        rest = await reader.read()
    assert b" 401 " in top
    assert b"connection: close" in top
    assert json.loads(rest)["error"]["type"] == "authentication_error"
    writer.close()
    await writer.wait_closed()
    await live.until(lambda: not live.server.server_state.connections)


@pytest.mark.parametrize(
    ("limit", "value", "sent"), [("MAX_DISCARDED_BYTES", 100_000, 1_000_000), ("LINGER_S", 0.05, 0)]
)
async def test_a_client_that_does_not_end_is_cut_off_in_bytes_and_in_time(
    live: Any, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, sent: int
) -> None:
    monkeypatch.setattr(limits, limit, value)
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    async with asyncio.timeout(60):
        writer.write(request("POST /v1/nothing", f"content-length: {10 * ENDLESS}"))
        assert b" 404 " in await reader.readline()
        writer.write(b" " * sent)
        await live.until(lambda: not live.server.server_state.connections)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_the_connection_of_a_body_that_was_read_is_kept(live: Any) -> None:
    for path in ("/v1/messages", "/v1/nothing"):
        response = await live.http.post(path, content=b"{}")
        assert response.status_code in (400, 404)
    head = request(POST, "content-length: 2") + b"{}"
    answer = await exchange(live.port, head + head, request("GET /v1/models", "connection: close"))
    assert answer.count(b"HTTP/1.1 400") == 2
    assert answer.count(b"HTTP/1.1 200") == 1


async def test_a_head_beyond_its_limit_is_refused(live: Any) -> None:
    head = request("GET /v1/models", "connection: close", "a: " + "a" * (limits.MAX_HEAD_BYTES // 2))
    assert b" 200 " in (await exchange(live.port, head, b"")).partition(b"\r\n")[0]
    head = request("GET /v1/models", *["a:"] * limits.MAX_HEAD_BYTES)
    assert b" 400 " in (await exchange(live.port, head, b"")).partition(b"\r\n")[0]


async def test_an_upgrade_is_answered_as_if_it_were_not_asked_for(
    live: Any, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = ("connection: upgrade, close", "upgrade: websocket")
    answer = await exchange(live.port, request("GET /v1/models", *upgrade), b"")
    assert answer.startswith(b"HTTP/1.1 200")
    assert "install" not in caplog.text
