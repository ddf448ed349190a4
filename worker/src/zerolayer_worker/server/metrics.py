"""Prometheus metrics of a worker."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.engine.api import EngineStats
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
        self.registry.register(_EngineCollector(lifecycle))
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


class _EngineCollector(Collector):
    """Gauges from one snapshot of the engine."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    def describe(self) -> Iterator[Metric]:
        """Nothing to describe before the engine is there."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """Reads the engine once."""
        draining = 1.0 if self._lifecycle.draining else 0.0
        yield GaugeMetricFamily("zero_layer_draining", "Whether the worker was told to go.", draining)
        yield GaugeMetricFamily(
            "zero_layer_http_requests_in_flight",
            "HTTP requests accepted and not yet answered.",
            self._lifecycle.in_flight,
        )
        engine = self._lifecycle.engine
        if engine is None:
            return
        yield from _anchor(engine.info.anchor)
        stats = engine.stats()
        yield GaugeMetricFamily("zero_layer_requests_running", "Requests that hold a slot.", stats.running)
        yield GaugeMetricFamily("zero_layer_requests_waiting", "Requests in the queue.", stats.waiting)
        yield GaugeMetricFamily("zero_layer_slots", "Requests that can run at once.", stats.slots)
        yield GaugeMetricFamily(
            "zero_layer_busy_share", "Tokens scheduled / schedulable over the last 15 s.", stats.busy_share
        )
        yield from _load(stats)
        yield _repeats(stats)
        yield GaugeMetricFamily(
            "zero_layer_last_step_age_seconds",
            "Seconds since the engine loop last turned while it had work.",
            stats.last_step_age_s,
        )
        yield CounterMetricFamily("zero_layer_engine_steps", "Turns of the engine's loop.", stats.steps)
        yield CounterMetricFamily(
            "zero_layer_sampler_second_pass",
            "Rows whose filters needed a second walk over the head.",
            stats.sampler_second_passes,
        )


def _repeats(stats: EngineStats) -> Metric:
    checks = CounterMetricFamily(
        "zero_layer_consistency_checks",
        "Deterministic requests that were asked again, by whether the answer was the same.",
        labels=("result",),
    )
    checks.add_metric(("same",), stats.repeats.same)
    checks.add_metric(("different",), stats.repeats.different)
    return checks


def _anchor(anchor: Anchor | None) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "zero_layer_anchor_info",
        "1 for the knowledge anchor that is applied; no series without one.",
        labels=("version", "digest"),
    )
    if anchor is not None:
        info.add_metric((anchor.version, anchor.digest), 1)
    yield info


def _load(stats: EngineStats) -> Iterator[Metric]:
    """Counters from whose growth the load between two scrapes follows, however far apart they are."""
    load = stats.load
    yield CounterMetricFamily(
        "zero_layer_requests_received", "Requests put into the engine's queue.", load.received
    )
    yield CounterMetricFamily(
        "zero_layer_requests_served", "Requests that left a slot, for whatever reason.", load.served
    )
    yield CounterMetricFamily(
        "zero_layer_busy_slot_seconds",
        "Integral over time of the requests that hold a slot.",
        load.busy_slot_seconds,
    )
    yield CounterMetricFamily(
        "zero_layer_waiting_request_seconds",
        "Integral over time of the requests in the queue.",
        load.waiting_request_seconds,
    )
    yield CounterMetricFamily(
        "zero_layer_served_slot_seconds",
        "Seconds that requests which left a slot had held it, together.",
        load.served_slot_seconds,
    )
    yield CounterMetricFamily(
        "zero_layer_busy_share_seconds",
        "Integral over time of tokens scheduled / schedulable.",
        stats.busy_share_seconds,
    )
