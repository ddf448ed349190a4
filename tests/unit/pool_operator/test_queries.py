"""The PromQL that metrics stand for."""

import re

import pytest

from zerolayer_dev.paths import repo_root
from zerolayer_operator.api import queries
from zerolayer_operator.api.metric import DEFAULT_TARGETS, MetricSpec, MetricType

LABELS = queries.workers("team-a", "chat", "abc")
SELECTOR = '{namespace="team-a",zerolayer_dev_pool="chat",zerolayer_dev_revision="abc"}'


def metric(kind: str, target: int | None = 1, query: str | None = None) -> MetricSpec:
    return MetricSpec(type=MetricType(kind), target=target, query=query)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (
            metric("Utilization"),
            f"100 * sum(rate(zero_layer_busy_share_seconds_total{SELECTOR}[120s]))",
        ),
        (
            metric("Concurrency"),
            (
                f"sum(rate(zero_layer_busy_slot_seconds_total{SELECTOR}[120s]))"
                f" + sum(rate(zero_layer_waiting_request_seconds_total{SELECTOR}[120s]))"
            ),
        ),
        (metric("TokenRate"), f"sum(rate(zero_layer_output_tokens_total{SELECTOR}[120s]))"),
        (metric("PromQL", query='sum(up{job="x"})'), 'sum(up{job="x"})'),
    ],
    ids=["utilization", "concurrency", "token rate", "promql"],
)
def test_query_is_the_sum_over_the_serving_workers(of: MetricSpec, expected: str) -> None:
    assert queries.query(of, LABELS, 120) == expected


def test_cpu_comes_from_elsewhere() -> None:
    with pytest.raises(ValueError, match="CPU"):
        queries.query(metric("CPU"), LABELS, 120)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [("15s", 60), ("30s", 120), ("1m", 240), ("1m30s", 360), ("500ms", 60), ("1s", 60)],
)
def test_rate_looks_back_over_four_scrapes_and_at_least_a_minute(interval: str, expected: int) -> None:
    assert queries.range_seconds(interval) == expected


def test_every_type_but_cpu_has_a_name_of_its_own() -> None:
    assert set(queries.EXTERNAL_NAMES) == set(MetricType) - {MetricType.CPU}
    assert len(set(queries.EXTERNAL_NAMES.values())) == len(queries.EXTERNAL_NAMES)


@pytest.mark.parametrize(("kind", "average"), DEFAULT_TARGETS.items())
def test_average_of_a_type_that_needs_none_named(kind: str, average: int) -> None:
    assert metric(kind, None).average == average
    assert metric(kind, 55).average == 55


def test_workers_count_what_is_asked_of_them() -> None:
    told = (repo_root() / "docs" / "monitoring.md").read_text(encoding="utf-8")
    asked = {queries.query(metric(kind), LABELS, 60) for kind in ("Utilization", "Concurrency", "TokenRate")}
    counters = {found for text in asked for found in re.findall(r"zero_layer_\w+", text)}

    assert len(counters) == 4
    assert [counter for counter in counters if f"`{counter}`" not in told] == []
