"""Probes, metrics, version and drain."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from zerolayer_operator.observe.worker_metrics import read_counters
from zerolayer_worker.server import limits
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics
from zerolayer_worker.server.ops import STALLED_S, is_loopback, ops_app


async def get(ops: Any, path: str) -> tuple[int, Any]:
    response = await ops.http.get(path)
    return response.status_code, response.json()


async def test_while_loading_the_worker_lives_but_is_not_ready(start_ops: Any) -> None:
    ops = await start_ops(revision="0a1b2c3d4e")
    ops.lifecycle.on_stage("compile")
    assert await get(ops, "/startupz") == (503, {"ready": False, "stage": "compile"})
    assert await get(ops, "/readyz") == (503, {"ready": False, "reason": "compile"})
    assert (await get(ops, "/healthz"))[0] == 200
    status, version = await get(ops, "/version")
    assert (status, version["model"], version["revision"]) == (200, None, "0a1b2c3d4e")


async def test_once_loaded_every_probe_agrees(start_ops: Any, engine: Any) -> None:
    ops = await start_ops()
    ops.lifecycle.loaded(engine, {"load": 2.5, "settle": 0.5})
    assert await get(ops, "/startupz") == (200, {"ready": True, "stages": {"load": 2.5, "settle": 0.5}})
    assert await get(ops, "/readyz") == (200, {"ready": True})
    assert (await get(ops, "/healthz"))[0] == 200
    _, version = await get(ops, "/version")
    assert version["model"] == {"name": "fake-model", "digest": "sha256:feed", "dtype": "float32"}
    assert (version["fingerprint"], version["device"], version["anchor"]) == ("zl-fake-1", "cpu", None)
    assert version["torch"].startswith("2.")
    assert (version["engine"], version["kernels"]) == ("zerolayer", "plain")


async def test_a_loop_that_stands_still_fails_liveness_and_readiness(start_ops: Any, engine: Any) -> None:
    ops = await start_ops()
    ops.lifecycle.loaded(engine, {})
    engine.step_age = STALLED_S - 1
    assert (await get(ops, "/healthz"))[0] == 200
    engine.step_age = STALLED_S + 1
    assert (await get(ops, "/healthz"))[0] == 503
    assert await get(ops, "/readyz") == (503, {"ready": False, "reason": "the engine's loop stands still"})
    assert (await get(ops, "/startupz"))[0] == 200


async def test_metrics_read_the_engine(start_ops: Any, engine: Any) -> None:
    ops = await start_ops()
    early = (await ops.http.get("/metrics")).text
    assert "zero_layer_requests_running" not in early
    ops.lifecycle.loaded(engine, {})
    ops.lifecycle.begin_drain()
    text = (await ops.http.get("/metrics")).text
    samples = {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}
    assert samples["zero_layer_requests_running"] == 1
    assert samples["zero_layer_requests_waiting"] == 2
    assert samples["zero_layer_busy_share"] == 0.5
    assert samples["zero_layer_engine_steps_total"] == 3
    assert samples["zero_layer_sampler_second_pass_total"] == 4
    assert samples["zero_layer_draining"] == 1
    assert samples["zero_layer_requests_received_total"] == 9
    assert samples["zero_layer_requests_served_total"] == 6
    assert samples["zero_layer_busy_slot_seconds_total"] == 30.5
    assert samples["zero_layer_waiting_request_seconds_total"] == 12.25
    assert samples["zero_layer_served_slot_seconds_total"] == 28
    assert samples["zero_layer_busy_share_seconds_total"] == 6.25


def test_an_operator_reads_the_times_to_the_first_token(engine: Any) -> None:
    lifecycle = Lifecycle(30)
    metrics = Metrics(lifecycle)
    lifecycle.loaded(engine, {})
    assert read_counters(generate_latest(metrics.registry).decode(), first_tokens=True).first_tokens == {}
    for route, seconds in (("messages", 0.3), ("messages", 700), ("chat", 0.5)):
        metrics.first_token.labels(route).observe(seconds)
    found = read_counters(generate_latest(metrics.registry).decode(), first_tokens=True).first_tokens
    assert found is not None
    assert (found[0.25], found[0.5], found[600], found[float("inf")]) == (0, 2, 2, 3)


async def test_drain_waits_for_what_is_in_flight(start_ops: Any, engine: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "DRAIN_GRACE_S", 0.02)
    ops = await start_ops()
    ops.lifecycle.loaded(engine, {})
    with ops.lifecycle.request():
        drain = asyncio.create_task(ops.http.post("/drain"))
        while not ops.lifecycle.draining:  # noqa: ASYNC110  # a state, not an event
            await asyncio.sleep(0.001)
        assert await get(ops, "/readyz") == (503, {"ready": False, "reason": "draining"})
        assert (await get(ops, "/startupz"))[0] == 200
        assert not drain.done()
    response = await drain
    assert (response.status_code, response.json()) == (200, {"drained": True, "inFlight": 0})


async def test_drain_ends_with_its_time(start_ops: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "DRAIN_GRACE_S", 0)
    ops = await start_ops(drain_seconds=0.05)
    with ops.lifecycle.request():
        assert (await ops.http.post("/drain")).json() == {"drained": False, "inFlight": 1}


async def test_drain_is_a_post(start_ops: Any) -> None:
    ops = await start_ops()
    assert (await ops.http.get("/drain")).status_code == 405
    assert not ops.lifecycle.draining


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1", False),
        ("testclient", False),
        ("", False),
    ],
)
def test_what_counts_as_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("host", "file", "headers", "allowed"),
    [
        ("127.0.0.1", None, {}, True),
        ("10.0.0.1", None, {}, False),
        ("10.0.0.1", None, {"x-api-key": ""}, False),
        ("10.0.0.1", "admin\n", {"x-api-key": "admin"}, True),
        ("10.0.0.1", "admin\n", {"authorization": "Bearer admin"}, True),
        ("10.0.0.1", "admin\n", {"authorization": "Bearer guess"}, False),
        ("10.0.0.1", "admin\n", {"x-forwarded-for": "127.0.0.1"}, False),
        ("10.0.0.1", "\n", {"x-api-key": "x"}, False),
        ("10.0.0.1", "admin\nother", {"x-api-key": "admin"}, False),
        ("10.0.0.1", "missing", {"x-api-key": "missing"}, False),
    ],
)
async def test_who_may_drain(
    tmp_path: Path, *, host: str, file: str | None, headers: dict[str, str], allowed: bool
) -> None:
    key_file = tmp_path / "key"
    if file not in (None, "missing"):
        key_file.write_text(file)
    lifecycle = Lifecycle(0.01)
    app = ops_app(lifecycle, Metrics(lifecycle), admin_key_file=key_file if file else None)
    transport = httpx.ASGITransport(app, client=(host, 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as http:
        response = await http.post("/drain", headers=headers)
    assert (response.status_code == 200) is allowed
    assert lifecycle.draining is allowed


@pytest.mark.parametrize(
    ("content", "cause"), [(None, "No such file or directory"), ("admin\nother", "holds several lines")]
)
async def test_an_admin_key_that_cannot_be_used_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | None, cause: str
) -> None:
    key_file = tmp_path / "key"
    if content is not None:
        key_file.write_text(content)
    lifecycle = Lifecycle(0.01)
    app = ops_app(lifecycle, Metrics(lifecycle), admin_key_file=key_file)
    transport = httpx.ASGITransport(app, client=("10.0.0.1", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as http:
        await http.post("/drain", headers={"x-api-key": "guess"})
    logged = [vars(record) for record in caplog.records if record.message == "the admin key can't be used"]
    assert [(each["file"], each["cause"].startswith(cause)) for each in logged] == [(str(key_file), True)]
