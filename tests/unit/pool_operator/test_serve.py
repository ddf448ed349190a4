import asyncio
import socket
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from zerolayer_dev.testing.clock import FakeClock
from zerolayer_operator import metrics
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.serve import health_app, metrics_app, probes_and_metrics, served
from zerolayer_operator.settings import Settings


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def heartbeat(clock: FakeClock) -> Heartbeat:
    return Heartbeat(resync_interval_s=60, lease_interval_s=15, clock=clock)


@pytest.fixture
def settings_on(unused_tcp_port_factory: Callable[[], int]) -> Settings:
    return Settings(
        worker_image="w:1",
        bind_host="127.0.0.1",
        health_port=unused_tcp_port_factory(),
        metrics_port=unused_tcp_port_factory(),
    )


async def test_probes_answer_with_the_verdict(heartbeat: Heartbeat, clock: FakeClock) -> None:
    async with TestClient(TestServer(health_app(heartbeat))) as client:
        async with client.get("/readyz") as response:
            assert response.status == 503
            assert (await response.json())["role"] == "starting"
        heartbeat.become("leading")
        heartbeat.beat("lease")
        clock.now = 2
        async with client.get("/healthz") as response:
            assert response.status == 200
            assert response.headers["Connection"] == "close"
            body = await response.json()
            assert body == {
                "ok": True,
                "role": "leading",
                "reason": "every loop turns",
                "ages": {"lease": 2.0},
            }
        clock.now = 500
        async with client.get("/healthz") as response:
            assert response.status == 503


async def test_metrics_are_served_under_their_names() -> None:
    metrics.LEADER.set(0)
    async with TestClient(TestServer(metrics_app())) as client, client.get("/metrics") as response:
        text = await response.text()
    assert response.status == 200
    for name in (
        "zerolayer_operator_reconcile_seconds_bucket",
        "zerolayer_operator_leader ",
        "zerolayer_operator_resync_last_timestamp_seconds",
        "process_resident_memory_bytes",
    ):
        assert name in text


async def test_both_ports_answer_and_are_free_again_afterwards(
    heartbeat: Heartbeat, settings_on: Settings
) -> None:
    health = f"http://127.0.0.1:{settings_on.health_port}"
    scraped = f"http://127.0.0.1:{settings_on.metrics_port}"
    async with aiohttp.ClientSession() as session:
        async with probes_and_metrics(settings_on, heartbeat):
            for url, status in (
                (f"{health}/healthz", 200),
                (f"{health}/readyz", 503),
                (f"{health}/metrics", 404),
                (f"{scraped}/metrics", 200),
            ):
                async with session.get(url) as response:
                    assert response.status == status, url
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"{health}/healthz")


async def test_taken_port_is_an_error(heartbeat: Heartbeat, settings_on: Settings) -> None:
    taken = socket.create_server(("127.0.0.1", settings_on.metrics_port))
    with taken, pytest.raises(OSError, match="address already in use"):
        async with probes_and_metrics(settings_on, heartbeat):
            pass


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\tb\n\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["TLS", "two hosts", "two lines", "many headers", "length", "path"],
)
async def test_what_is_no_http_is_refused_and_not_logged(
    nonsense: bytes, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(metrics_app(), "127.0.0.1", unused_tcp_port):
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        writer.write(nonsense)
        assert (await reader.read(100)).startswith(b"HTTP/1.0 400 ")
        writer.close()
    assert caplog.records == []


async def test_what_we_do_wrong_is_logged(unused_tcp_port: int, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: web.Request) -> web.Response:
        raise ArithmeticError

    app = web.Application()
    app.router.add_get("/", fail)
    async with (
        served(app, "127.0.0.1", unused_tcp_port),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{unused_tcp_port}/") as response,
    ):
        assert response.status == 500
    assert "ArithmeticError" in caplog.text
