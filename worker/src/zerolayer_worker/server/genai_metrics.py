"""Generated answers by OpenTelemetry's conventions for generative AI, in Prometheus' spelling.

Names, attributes and bounds: https://github.com/open-telemetry/semantic-conventions-genai. A dot becomes an
underscore, and the unit a suffix, as OpenTelemetry's exporter for Prometheus writes them.
"""

from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Histogram

PROVIDER: Final = "zerolayer"
DISCONNECTED: Final = "client_disconnected"
"""`error.type` of a request whose client went away; of all others it is the HTTP status."""

_DURATION: Final = tuple(0.01 * 2**power for power in range(14))
_PER_TOKEN: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_FIRST_TOKEN: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
_TOKENS: Final = tuple(4**power for power in range(14))
_COMMON: Final = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")


@dataclass(frozen=True, slots=True)
class Operation:
    """What a request asked of which model: the only values that labels get from requests.

    Attributes:
        name: `chat` or `text_completion`.
        model: a served one, so that a client can't make series.
    """

    name: str
    model: str

    @property
    def labels(self) -> tuple[str, str, str]:
        """Values of the common attributes."""
        return self.name, PROVIDER, self.model


class GenAiMetrics:
    """The histograms; seconds and tokens."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._duration = Histogram(
            "gen_ai_server_request_duration_seconds",
            "From the request's headers to the end of its answer, failed ones with the type of their error.",
            (*_COMMON, "error_type"),
            buckets=_DURATION,
            registry=registry,
        )
        self._first_token = Histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "From the request's headers to its first token, of complete answers.",
            _COMMON,
            buckets=_FIRST_TOKEN,
            registry=registry,
        )
        self._per_token = Histogram(
            "gen_ai_server_time_per_output_token_seconds",
            "Mean time of an answer's tokens after its first, of complete answers.",
            _COMMON,
            buckets=_PER_TOKEN,
            registry=registry,
        )
        self._usage = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of prompts (input) and answers (output), of complete answers.",
            (*_COMMON, "gen_ai_token_type"),
            buckets=_TOKENS,
            registry=registry,
        )

    def complete(
        self,
        operation: Operation,
        *,
        seconds: float,
        first_token_s: float | None,
        per_token_s: float | None,
        input_tokens: int,
        output_tokens: int,
    ) -> None:
        """An answer came to its end; the times are None where it has no such token."""
        self._duration.labels(*operation.labels, "").observe(seconds)
        if first_token_s is not None:
            self._first_token.labels(*operation.labels).observe(first_token_s)
        if per_token_s is not None:
            self._per_token.labels(*operation.labels).observe(per_token_s)
        self._usage.labels(*operation.labels, "input").observe(input_tokens)
        self._usage.labels(*operation.labels, "output").observe(output_tokens)

    def failed(self, operation: Operation, *, seconds: float, error_type: str) -> None:
        """A request got no complete answer."""
        self._duration.labels(*operation.labels, error_type).observe(seconds)
