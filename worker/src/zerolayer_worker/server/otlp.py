"""Traces over OTLP, by the conventions for generative AI; never a prompt or an answer.

Imports the optional extra `otlp`. Spans are queued and sent by a thread of the SDK's; where the queue is
full, because the collector is slow or away, they are dropped. OpenTelemetry's own variables say all else.
"""

import logging
import threading
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from zerolayer_worker.engine.api import Finished, GenerationRequest
from zerolayer_worker.server.genai_metrics import PROVIDER, Operation
from zerolayer_worker.server.tracing import Trace

CLOSE_S: Final = 2.0
"""Seconds that the last spans get to reach the collector when the worker ends."""

COMPLAINT_S: Final = 60.0
"""Seconds between two log lines about a collector that can't be reached."""

_FAULT: Final = 500
_LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.sdk._shared_internal",
)


class OtlpTracing:
    """See `Tracing`."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        """Starts the thread that sends.

        Args:
            exporter: another one than the environment's.

        Raises:
            ValueError: one of OpenTelemetry's variables is wrong.
        """
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_Seldom())
        resource = Resource.create({"service.version": version("zerolayer-worker")})
        if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": "zerolayer-worker"}))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("zerolayer_worker")
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, method: str, route: str, headers: Mapping[str, str]) -> Trace:
        """Starts the server's span."""
        span = self._tracer.start_span(
            f"{method} {route}",
            context=self._propagator.extract(dict(headers)),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
        )
        return _OtlpTrace(span)

    def close(self) -> None:
        """Sends what is left, for `CLOSE_S` seconds at most."""
        thread = threading.Thread(target=self._provider.shutdown, name="otlp-close", daemon=True)
        thread.start()
        thread.join(CLOSE_S)


class _OtlpTrace(Trace):
    def __init__(self, span: Span) -> None:
        self._span = span

    def asked(self, operation: Operation, request: GenerationRequest) -> None:
        sampling = request.sampling
        self._span.update_name(f"{operation.name} {operation.model}")
        self._span.set_attributes(
            {
                "gen_ai.operation.name": operation.name,
                "gen_ai.provider.name": PROVIDER,
                "gen_ai.request.model": operation.model,
                "gen_ai.request.max_tokens": request.max_tokens,
                "gen_ai.usage.input_tokens": len(request.prompt_ids),
                "zero_layer.request_id": request.request_id,
            }
        )
        if sampling.intent is not None:
            self._span.set_attribute("zero_layer.intent", sampling.intent.value)
        else:
            self._span.set_attribute("gen_ai.request.temperature", sampling.temperature)

    def first_token(self) -> None:
        self._span.add_event("gen_ai.first_token")

    def finished(self, finished: Finished) -> None:
        self._span.set_attributes(
            {
                "gen_ai.response.finish_reasons": [finished.reason.value],
                "gen_ai.usage.output_tokens": finished.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": finished.cached_tokens,
                "zero_layer.queue_time_seconds": finished.queued_s,
            }
        )

    def failed(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)

    def end(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if status >= _FAULT:
            self._span.set_attribute("error.type", str(status))
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class _Seldom(logging.Filter):
    """Lets a complaint pass once in `COMPLAINT_S` seconds, without a traceback that is always the same."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + COMPLAINT_S
        record.exc_info = None
        return True
