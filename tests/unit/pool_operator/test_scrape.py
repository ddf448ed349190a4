"""Asking workers how loaded they are, against servers in their place that misbehave."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from zerolayer_dev.testing import raw_http
from zerolayer_dev.testing.raw_http import Request, drips, response, says, says_nothing, serving
from zerolayer_dev.testing.worker_load import SteadyWorker
from zerolayer_operator.observe import scrape
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.worker_metrics import WorkerCounters, WorkerMetricsError

HOST = "127.0.0.1"
GOOD = SteadyWorker().metrics(100.0).encode()


async def ask(port: int, timeout_s: float = 20.0) -> WorkerCounters | WorkerMetricsError:
    scraper = Scraper(port, timeout_s)
    try:
        return (await scraper.scrape([HOST]))[HOST]
    finally:
        await scraper.close()


async def test_a_worker_tells_its_counters() -> None:
    asked: list[Request] = []

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        asked.append(request)
        writer.write(response(GOOD))

    async with serving(answer) as port:
        found = await ask(port)
    assert found == WorkerCounters(
        arrivals=50, busy_s=200, queued_s=0, finished=50, service_s=200, share_s=25, slots=8
    )
    assert [request.target for request in asked] == ["/metrics"]
    assert asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(response(b"", 500), "answers 500", id="status"),
        pytest.param(response(b"", 302, location="http://127.0.0.2:1/"), "answers 302", id="redirect"),
        pytest.param(response(b"<html>"), "does not give", id="another program"),
        pytest.param(response(b"zero_layer_slots x\n"), "can't be read", id="garbage"),
        pytest.param(response(b"\xff" * 9), "invalid start byte", id="no text"),
        pytest.param(response(GOOD.replace(b"zero_layer_slots 8", b"zero_layer_slots NaN")), "nan", id="NaN"),
        pytest.param(response(b"#" * (scrape.LIMIT_BYTES + 1)), "more than", id="huge"),
        pytest.param(response(GOOD, content_encoding="gzip"), "", id="said to be compressed"),
        pytest.param(b"no HTTP at all\r\n\r\n", "can't be asked", id="no HTTP"),
        pytest.param(b"", "can't be asked", id="closed at once"),
        pytest.param(response(GOOD)[:-50], "can't be asked", id="closed in between"),
    ],
)
async def test_a_worker_that_tells_nonsense(content: bytes, said: str) -> None:
    async with serving(says(content)) as port:
        found = await ask(port)
    if said:
        assert isinstance(found, WorkerMetricsError)
        assert said in str(found)
    else:
        assert isinstance(found, WorkerCounters)


async def test_a_worker_that_is_not_there() -> None:
    found = await ask(1)
    assert isinstance(found, WorkerMetricsError)
    assert "can't be asked (ClientConnectorError); let the operator reach" in str(found)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(says_nothing, id="silent"),
        pytest.param(drips(response(GOOD), 0.02), id="dripping"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9000, 0.02), id="dripping head"),
    ],
)
async def test_nobody_is_waited_for_longer_than_it_takes(answer) -> None:
    async with serving(answer) as port:
        began = time.monotonic()
        found = await ask(port, timeout_s=0.3)
        took = time.monotonic() - began
    assert isinstance(found, WorkerMetricsError)
    assert "no answer within 0.3 s" in str(found)
    assert took < 10


def floods(head: bytes, more: bytes) -> raw_http.Answer:
    """Never ends an answer, and sends as fast as it is read."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(more * 1000)
                await writer.drain()

    return answer


OPEN = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("head", "more"),
    [
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="interim answers"),
        pytest.param(b"", b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n", id="hints"),
        pytest.param(b"", OPEN + b"content-length: 0\r\n\r\n", id="answers"),
        pytest.param(OPEN, b"x: y\r\n", id="head"),
        pytest.param(OPEN + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n#\r\n", id="chunks"),
        pytest.param(OPEN + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n", id="trailers"),
        pytest.param(OPEN + b"\r\n", b"#\n", id="body"),
    ],
)
async def test_a_flood_is_broken_off(head: bytes, more: bytes) -> None:
    """It would keep the event loop busy for as long as it is waited for, and some fill the memory."""
    async with serving(floods(head, more)) as port:
        found = await ask(port, timeout_s=10)
    assert isinstance(found, WorkerMetricsError)
    assert "no answer within" not in str(found)


@pytest.fixture
async def crowd() -> AsyncIterator[tuple[Scraper, list[int]]]:
    """A server that notes how many ask at once."""
    present, most = 0, [0]

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal present
        present += 1
        most[0] = max(most[0], present)
        await asyncio.sleep(0.01)
        present -= 1
        writer.write(response(GOOD))

    async with serving(answer) as port:
        scraper = Scraper(port)
        yield scraper, most
        await scraper.close()


async def test_many_workers_are_asked_a_few_at_a_time(
    crowd: tuple[Scraper, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scraper, most = crowd
    scraper._places = asyncio.Semaphore(4)
    # All of 127.0.0.0/8 is this machine, but the server listens at one address of it.
    metrics = scraper._metrics
    monkeypatch.setattr(scraper, "_metrics", lambda _address: metrics(HOST))
    found = await scraper.scrape(f"127.0.0.{last}" for last in range(1, 40))
    assert len(found) == 39
    assert all(isinstance(each, WorkerCounters) for each in found.values())
    assert most[0] == 4


async def test_a_pool_that_gives_no_answers_holds_up_no_other(
    crowd: tuple[Scraper, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scraper, _ = crowd
    metrics = scraper._metrics

    async def answer(address: str) -> str:
        return await (metrics(HOST) if address == HOST else asyncio.Event().wait())

    monkeypatch.setattr(scraper, "_metrics", answer)
    silent = asyncio.create_task(scraper.scrape(f"127.0.1.{last}" for last in range(1, 100)))
    await asyncio.sleep(0)
    async with asyncio.timeout(scrape.TIMEOUT_S / 2):
        found = await scraper.scrape([HOST])
    silent.cancel()
    assert isinstance(found[HOST], WorkerCounters)


async def test_an_address_is_asked_once(crowd: tuple[Scraper, list[int]]) -> None:
    scraper, most = crowd
    assert len(await scraper.scrape([HOST] * 5)) == 1
    assert most[0] == 1


async def test_addresses_of_the_sixth_version_are_understood() -> None:
    scraper = Scraper(1, timeout_s=5)
    found = (await scraper.scrape(["::1"]))["::1"]
    await scraper.close()
    assert "can't be asked" in str(found)
