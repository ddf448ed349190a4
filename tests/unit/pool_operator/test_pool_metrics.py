"""Figures of pools as metrics: the unknown is absent, totals are counters, a pool that goes leaves none."""

import dataclasses

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.pool_metrics import PREFIX, PoolMetrics
from zerolayer_operator.workqueue import PoolKey

CHAT = PoolKey("models", "chat")
UNKNOWN = Figures(at=1_700_000_000.0, wanted=3, ready=2, window_s=300, floor=1)
KNOWN = dataclasses.replace(
    UNKNOWN,
    window_s=120,
    floor=2,
    hold=2,
    utilization=0.64,
    offered_slots=10.25,
    slots=16.0,
    flatness=0.93,
    known=True,
    regrets=4,
    spent_s=86_400.5,
    saved_s=-120.0,
    first_token_p99_s=1.6,
    latency_penalty=1.12,
    penalty_s=3.5,
)


@pytest.fixture
def metrics() -> PoolMetrics:
    return PoolMetrics()


def scraped(metrics: PoolMetrics) -> dict[str, float]:
    """What a scrape finds, by name and by the labels beside namespace and pool."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(metrics)
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("namespace"), labels.pop("pool")) == (CHAT.namespace, CHAT.name)
            found["/".join([sample.name.removeprefix(PREFIX), *labels.values()])] = sample.value
    return found


def test_every_figure_is_a_metric(metrics: PoolMetrics) -> None:
    metrics.tell(CHAT, KNOWN)
    assert scraped(metrics) == {
        "utilization": 0.64,
        "offered_slots": 10.25,
        "slots": 16.0,
        "replicas/wanted": 3,
        "replicas/ready": 2,
        "scale_down_window_seconds": 120,
        "hold_replicas": 2,
        "floor_replicas": 2,
        "flatness": 0.93,
        "load_known": 1,
        "regrets_total": 4,
        "replica_seconds_total": 86_400.5,
        "replica_seconds_saved": -120.0,
        "first_token_p99_seconds": 1.6,
        "latency_penalty": 1.12,
        "penalty_replica_seconds_total": 3.5,
    }


def test_what_is_unknown_is_absent(metrics: PoolMetrics) -> None:
    metrics.tell(CHAT, KNOWN)
    metrics.tell(CHAT, UNKNOWN)
    assert scraped(metrics) == {
        "replicas/wanted": 3,
        "replicas/ready": 2,
        "scale_down_window_seconds": 300,
        "hold_replicas": 0,
        "floor_replicas": 1,
        "load_known": 0,
        "regrets_total": 0,
        "replica_seconds_total": 0,
        "replica_seconds_saved": 0,
    }


def test_a_load_of_nothing_is_known(metrics: PoolMetrics) -> None:
    metrics.tell(
        CHAT, dataclasses.replace(KNOWN, utilization=0.0, offered_slots=0.0, slots=0.0, flatness=0.0)
    )
    found = scraped(metrics)
    assert [found[name] for name in ("utilization", "offered_slots", "slots", "flatness")] == [0, 0, 0, 0]


def test_totals_are_counters(metrics: PoolMetrics) -> None:
    types = {family.name.removeprefix(PREFIX): family.type for family in metrics.collect()}
    assert {name for name, kind in types.items() if kind == "counter"} == {
        "regrets",
        "replica_seconds",
        "penalty_replica_seconds",
    }
    assert set(types.values()) == {"counter", "gauge"}


def test_a_pool_that_goes_leaves_no_series(metrics: PoolMetrics) -> None:
    other = PoolKey("models", "embed")
    metrics.tell(other, KNOWN)
    metrics.tell(CHAT, KNOWN)
    metrics.forget(other)
    metrics.forget(PoolKey("models", "never-told"))
    assert scraped(metrics)["utilization"] == 0.64
    metrics.forget(CHAT)
    assert scraped(metrics) == {}


def test_two_collectors_in_one_registry_are_an_error(metrics: PoolMetrics) -> None:
    registry = CollectorRegistry(auto_describe=True)
    registry.register(metrics)
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(PoolMetrics())
