"""What is told about one request as a trace; nothing, where nobody collects traces."""

import logging
import os
from collections.abc import Mapping
from typing import Final, Protocol

from zerolayer_worker.engine.api import Finished, GenerationRequest
from zerolayer_worker.server.genai_metrics import Operation

_log = logging.getLogger(__name__)
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Trace:
    """One request's trace. This one keeps nothing; no call of any may wait or fail."""

    def asked(self, operation: Operation, request: GenerationRequest) -> None:
        """The request is understood and goes to the engine."""

    def first_token(self) -> None:
        """The answer begins."""

    def finished(self, finished: Finished) -> None:
        """The answer is complete."""

    def failed(self, error_type: str) -> None:
        """There is no complete answer."""

    def end(self, status: int) -> None:
        """The response with this HTTP status is over; the last call."""


class Tracing(Protocol):
    """Begins traces."""

    def begin(self, method: str, route: str, headers: Mapping[str, str]) -> Trace:
        """A request arrived; a W3C `traceparent` among its headers is its parent."""
        ...

    def close(self) -> None:
        """Sends what is left, within bounds of time."""
        ...


class NoTracing:
    """Where no collector is named."""

    def begin(self, method: str, route: str, headers: Mapping[str, str]) -> Trace:  # noqa: ARG002
        """A trace that keeps nothing."""
        return Trace()

    def close(self) -> None:
        """Nothing to send."""


def start_tracing(environment: Mapping[str, str] = os.environ) -> Tracing:
    """Traces to the collector that the environment names; without one, or without the packages, none."""
    if not any(environment.get(name) for name in ENDPOINTS):
        return NoTracing()
    try:
        from zerolayer_worker.server.otlp import OtlpTracing  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        _log.warning(
            "no traces are sent: install zerolayer-worker[otlp], or unset %s",
            ENDPOINTS[0],
            extra={"missing": error.name},
        )
        return NoTracing()
    try:
        return OtlpTracing()
    except Exception as error:  # noqa: BLE001 - a wrong variable must not keep a worker from serving
        _log.warning("no traces are sent: an OTEL_… variable is wrong", extra={"cause": str(error)})
        return NoTracing()
