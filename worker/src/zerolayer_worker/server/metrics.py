"""Prometheus metrics of a worker."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from zerolayer_worker.server.engine_metrics import EngineCollector
from zerolayer_worker.server.genai_metrics import GenAiMetrics
from zerolayer_worker.server.lifecycle import Lifecycle

_FINE = (
    *(
        round(digit * decade, 4)
        for decade in (0.001, 0.01, 0.1, 1.0)
        for digit in (1, 1.4, 1.8, 2.5, 3.5, 5, 7)
    ),
    *(10.0, 14.0, 20.0, 30.0, 42.0, 60.0, 120.0, 300.0, 600.0),
)
"""Up to a minute no bound is more than 1.5 times the one before: two revisions are compared by these."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """The counters and histograms the server feeds, and gauges read from the engine at scrape time."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        disable_created_metrics()
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.registry.register(EngineCollector(lifecycle))
        self.gen_ai = GenAiMetrics(self.registry)
        self.responses = Counter(
            "zero_layer_responses",
            "HTTP answers on the serving port.",
            ("route", "code"),
            registry=self.registry,
        )
        self.duration = Histogram(
            "zero_layer_request_duration_seconds",
            "From the request's headers to the end of its answer, generated answers only.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.first_token = Histogram(
            "zero_layer_time_to_first_token_seconds",
            "From the request's headers to its first token.",
            ("route",),
            buckets=_FINE,
            registry=self.registry,
        )
        self.inter_token = Histogram(
            "zero_layer_inter_token_seconds",
            "From one token of an answer to its next, as the engine made them.",
            buckets=_FINE,
            registry=self.registry,
        )
        self.queue_time = Histogram(
            "zero_layer_queue_time_seconds",
            "How long requests that were answered had waited in the engine's queue before they first ran.",
            buckets=_FINE,
            registry=self.registry,
        )
        self.answers = Counter(
            "zero_layer_answers",
            "Generated answers that were complete, and requests that failed by the worker's fault.",
            ("outcome",),
            registry=self.registry,
        )
        for outcome in ("ok", "error"):
            self.answers.labels(outcome)
        self.prompt_tokens = Counter(
            "zero_layer_prompt_tokens", "Tokens of accepted prompts.", registry=self.registry
        )
        self.output_tokens = Counter(
            "zero_layer_output_tokens", "Tokens generated for clients.", registry=self.registry
        )
        self.intent_requests = Counter(
            "zero_layer_intent_requests",
            "Accepted requests in zero-layer mode, by intent.",
            ("intent",),
            registry=self.registry,
        )
        self.intent_switches = Counter(
            "zero_layer_intent_switches",
            "Requests that went on with a conversation under another intent than its request before.",
            registry=self.registry,
        )
        self.rejected = Counter(
            "zero_layer_rejected_requests",
            "Requests refused or failed for a reason other than their content.",
            ("reason",),
            registry=self.registry,
        )
        self.disconnects = Counter(
            "zero_layer_client_disconnects",
            "Requests whose client went away before the answer was complete.",
            registry=self.registry,
        )
        self.cut_streams = Counter(
            "zero_layer_drained_streams_cut",
            "Answers ended by an error because the drain's time was over.",
            registry=self.registry,
        )
        self.key_faults = Gauge(
            "zero_layer_api_key_faults",
            "API keys that can't be read, so that an older one may be valid, or are none.",
            registry=self.registry,
        )
        self.warmup = Gauge(
            "zero_layer_warmup_stage_seconds",
            "How long each stage of start-up took.",
            ("stage",),
            registry=self.registry,
        )
