"""Traces over OTLP: what they hold, what they never hold, and that a collector holds nothing up."""

import builtins
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from zerolayer_worker.engine.api import EngineError, OverloadedError
from zerolayer_worker.server import otlp
from zerolayer_worker.server.otlp import OtlpTracing
from zerolayer_worker.server.tracing import NoTracing, start_tracing

SECRET = "SECRET-PROMPT"
BODY: dict[str, Any] = {
    "model": "fake-model",
    "max_tokens": 20,
    "messages": [{"role": "user", "content": SECRET}],
    "system": SECRET,
}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
REQUESTS = 20


class Collector:
    """Keeps the spans that it is sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.raw = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.raw += (content := self.rfile.read(int(self.headers["content-length"])))
                sent = ExportTraceServiceRequest.FromString(content)
                for resource in sent.resource_spans:
                    for scope in resource.scope_spans:
                        outer.spans += [(span, resource.resource) for span in scope.spans]
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def only(self) -> tuple[Any, dict[str, Any]]:
        ((span, _),) = self.spans
        return span, {each.key: plain(each.value) for each in span.attributes}


def plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [plain(each) for each in found.values] if kind == "array_value" else found


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_span_of_a_request(start: Any, engine: Any, collector: Collector, stream: bool) -> None:
    tracing = OtlpTracing(OTLPSpanExporter(collector.url))
    live = await start(engine, tracing=tracing)
    headers = {"traceparent": PARENT, "anthropic-sampling-intent": "balanced"}
    assert (
        await live.http.post("/v1/messages", json=BODY | {"stream": stream}, headers=headers)
    ).status_code == 200
    await live.until(lambda: live.lifecycle.in_flight == 0)
    tracing.close()
    span, attributes = collector.only()
    assert span.name == "chat fake-model"
    assert span.kind == span.SPAN_KIND_SERVER
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    assert [event.name for event in span.events] == ["gen_ai.first_token"]
    assert attributes.pop("zero_layer.request_id").startswith("req_")
    assert attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/messages",
        "http.response.status_code": 200,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "zerolayer",
        "gen_ai.request.model": "fake-model",
        "gen_ai.request.max_tokens": 20,
        "gen_ai.response.finish_reasons": ["end_of_sequence"],
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "zero_layer.intent": "balanced",
        "zero_layer.queue_time_seconds": 0.25,
    }
    resource = {each.key: plain(each.value) for each in collector.spans[0][1].attributes}
    assert resource["service.name"] == "zerolayer-worker"
    assert SECRET.encode() not in collector.raw
    assert b"world" not in collector.raw


@pytest.mark.parametrize(
    ("refusal", "status", "error"),
    [(OverloadedError("full", retry_after=1), 429, "429"), (EngineError("broken"), 500, "500")],
)
async def test_a_span_of_a_failure(
    start: Any, engine: Any, collector: Collector, refusal: Exception, status: int, error: str
) -> None:
    engine.refusal = refusal
    tracing = OtlpTracing(OTLPSpanExporter(collector.url))
    live = await start(engine, tracing=tracing)
    assert (
        await live.http.post("/v1/messages", json=BODY, headers={"traceparent": "junk"})
    ).status_code == status
    await live.until(lambda: live.lifecycle.in_flight == 0)
    tracing.close()
    span, attributes = collector.only()
    assert (attributes["error.type"], attributes["http.response.status_code"]) == (error, status)
    assert (span.status.code == span.status.STATUS_CODE_ERROR) == (status == 500)
    assert span.parent_span_id == b""


async def test_what_is_no_generation_has_a_span_too(start: Any, engine: Any, collector: Collector) -> None:
    tracing = OtlpTracing(OTLPSpanExporter(collector.url))
    live = await start(engine, tracing=tracing)
    assert (await live.http.get(f"/{SECRET}")).status_code == 404
    await live.until(lambda: live.lifecycle.in_flight == 0)
    tracing.close()
    span, _ = collector.only()
    assert span.name == "GET other"
    assert SECRET.encode() not in collector.raw


@pytest.fixture(params=["dead", "blackhole"])
def nowhere(request: pytest.FixtureRequest) -> Iterator[str]:
    """A port that refuses, and one that takes connections and never says anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "blackhole":
            listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"


async def test_a_collector_that_is_away_holds_nothing_up(
    start: Any, engine: Any, nowhere: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests are answered while the sending thread waits; the end of the worker waits a bounded time."""
    monkeypatch.setattr(otlp, "CLOSE_S", 0.2)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    tracing = OtlpTracing(OTLPSpanExporter(nowhere, timeout=3))
    live = await start(engine, tracing=tracing)
    for _ in range(REQUESTS):
        assert (await live.http.post("/v1/messages", json=BODY)).status_code == 200
    began = time.monotonic()
    tracing.close()
    # The exporter alone would have waited for its timeout, several times over.
    assert time.monotonic() - began < 2.9
    complaints = [record for record in caplog.records if record.name.startswith("opentelemetry")]
    assert len(complaints) <= len(otlp._LOGGERS)
    assert not any(record.exc_info for record in complaints)


class Stuck(SpanExporter):
    """Sends nothing before it is let, and knows who wanted it to."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.callers: set[threading.Thread] = set()

    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002 - the interface has it
        self.callers.add(threading.current_thread())
        self.let.wait(1)
        return SpanExportResult.SUCCESS


async def test_nobody_but_a_thread_of_its_own_sends(
    start: Any, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    stuck = Stuck()
    tracing = OtlpTracing(stuck)
    live = await start(engine, tracing=tracing)
    for _ in range(REQUESTS):
        assert (await live.http.post("/v1/messages", json=BODY)).status_code == 200
    await live.until(lambda: bool(stuck.callers))
    stuck.let.set()
    assert threading.current_thread() not in stuck.callers
    tracing.close()


def test_without_an_endpoint_there_are_no_traces() -> None:
    assert isinstance(start_tracing({}), NoTracing)
    assert isinstance(start_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}), NoTracing)


def test_missing_packages_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "zerolayer_worker.server.otlp":
            raise ImportError("No module named 'opentelemetry'", name="opentelemetry")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with caplog.at_level(logging.WARNING):
        tracing = start_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert isinstance(tracing, NoTracing)
    assert "install zerolayer-worker[otlp]" in caplog.text


def test_wrong_variables_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1")
    with caplog.at_level(logging.WARNING):
        tracing = start_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert isinstance(tracing, NoTracing)
    assert "OTEL_… variable is wrong" in caplog.text


def test_the_environment_starts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    tracing = start_tracing()
    assert isinstance(tracing, OtlpTracing)
    tracing.close()
