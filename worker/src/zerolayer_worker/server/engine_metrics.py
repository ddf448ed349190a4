"""What the engine says of itself, read once at every scrape."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.engine.api import EngineStats, RepeatCounts
from zerolayer_worker.server.lifecycle import Lifecycle


class EngineCollector(Collector):
    """Gauges and counters from one snapshot of the engine, and of the process' life."""

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
        stats = engine.stats()
        yield from _anchor(engine.info.anchor)
        yield from _now(stats)
        yield from _load(stats)
        yield from _repeats(stats.repeats)
        yield from _cache(stats)
        yield from _work(stats)


def _anchor(anchor: Anchor | None) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "zero_layer_anchor_info",
        "1 for the knowledge anchor that is applied; no series without one.",
        labels=("version", "digest"),
    )
    if anchor is not None:
        info.add_metric((anchor.version, anchor.digest), 1)
    yield info


def _now(stats: EngineStats) -> Iterator[Metric]:
    yield GaugeMetricFamily("zero_layer_requests_running", "Requests that hold a slot.", stats.running)
    yield GaugeMetricFamily("zero_layer_requests_waiting", "Requests in the queue.", stats.waiting)
    yield GaugeMetricFamily("zero_layer_slots", "Requests that can run at once.", stats.slots)
    yield GaugeMetricFamily(
        "zero_layer_busy_share", "Tokens scheduled / schedulable over the last 15 s.", stats.busy_share
    )
    yield GaugeMetricFamily(
        "zero_layer_last_step_age_seconds",
        "Seconds since the engine loop last turned while it had work.",
        stats.last_step_age_s,
    )


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


def _repeats(counts: RepeatCounts) -> Iterator[Metric]:
    checks = CounterMetricFamily(
        "zero_layer_consistency_checks",
        "Deterministic requests that were asked again, by whether the answer was the same.",
        labels=("result",),
    )
    checks.add_metric(("same",), counts.same)
    checks.add_metric(("different",), counts.different)
    yield checks
    ratio = GaugeMetricFamily(
        "zero_layer_intent_consistency_ratio",
        "Share of the deterministic requests asked again whose answer was the same; none before the first.",
        labels=("intent",),
    )
    if asked := counts.same + counts.different:
        ratio.add_metric(("deterministic",), counts.same / asked)
    yield ratio


def _cache(stats: EngineStats) -> Iterator[Metric]:
    yield GaugeMetricFamily("zero_layer_kv_pages", "Pages of the KV cache.", stats.kv_pages)
    yield GaugeMetricFamily(
        "zero_layer_kv_pages_used", "Pages of the KV cache that requests hold.", stats.kv_pages_used
    )
    yield GaugeMetricFamily(
        "zero_layer_kv_pages_cached",
        "Pages that no request holds and that keep a prompt's beginning for later ones.",
        stats.kv_pages_cached,
    )
    yield CounterMetricFamily(
        "zero_layer_prefix_cache_query_tokens",
        "Tokens of the prompts that began to run.",
        stats.prefix_query_tokens,
    )
    yield CounterMetricFamily(
        "zero_layer_prefix_cache_hit_tokens",
        "Of those, tokens whose keys and values were there from an earlier request.",
        stats.prefix_hit_tokens,
    )
    yield CounterMetricFamily(
        "zero_layer_preemptions",
        "Requests whose pages were taken away to be computed again later.",
        stats.preemptions,
    )


def _work(stats: EngineStats) -> Iterator[Metric]:
    yield CounterMetricFamily("zero_layer_engine_steps", "Turns of the engine's loop.", stats.steps)
    yield CounterMetricFamily(
        "zero_layer_sampler_second_pass",
        "Rows whose filters needed a second walk over the head.",
        stats.sampler_second_passes,
    )
