import socket
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from zerolayer_dev.testing.clock import FakeClock
from zerolayer_operator import metrics
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.serve import health_app, metrics_app, probes_and_metrics
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
