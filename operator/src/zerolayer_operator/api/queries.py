"""The PromQL of a pool's metrics, over what workers count.

Each query has one value for all workers of the serving revision together: whoever scales divides it by the
average that one worker is to carry. Growth of counters is used, not gauges: it is an average over the range
however rarely workers are scraped, and a worker that was just started adds nothing that is not there.
"""

from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.metric import MetricSpec, MetricType
from zerolayer_operator.api.types import seconds

BUSY_SHARE_SECONDS: Final = "zero_layer_busy_share_seconds_total"
BUSY_SLOT_SECONDS: Final = "zero_layer_busy_slot_seconds_total"
WAITING_REQUEST_SECONDS: Final = "zero_layer_waiting_request_seconds_total"
OUTPUT_TOKENS: Final = "zero_layer_output_tokens_total"

EXTERNAL_NAMES: Final = {
    MetricType.UTILIZATION: "zero_layer_utilization",
    MetricType.CONCURRENCY: "zero_layer_concurrency",
    MetricType.TOKEN_RATE: "zero_layer_token_rate",
    MetricType.PROMQL: "zero_layer_promql",
}
"""Names under which an autoscaler asks an external metrics API for them."""

_SHORTEST_RANGE_S: Final = 60
_SCRAPES: Final = 4
"""A rate needs two samples; of four, one may be late and one be missing."""


def workers(namespace: str, pool: str, revision: str) -> dict[str, str]:
    """The labels by which Prometheus tells the workers of one revision from all others."""
    return {"namespace": namespace, **workers_within(pool, revision)}


def workers_within(pool: str, revision: str) -> dict[str, str]:
    """The same within the pool's namespace."""
    return {names.PROMETHEUS_POOL: pool, names.PROMETHEUS_REVISION: revision}


def range_seconds(scrape_interval: str) -> int:
    """How far back a rate looks where workers are scraped that often."""
    return max(_SHORTEST_RANGE_S, _SCRAPES * seconds(scrape_interval))


def query(metric: MetricSpec, labels: dict[str, str], range_s: int) -> str:
    """The query whose value is the metric's sum over the workers that have the labels.

    Args:
        metric: A metric of another type than CPU.
        labels: The workers' labels; their values need no escaping.
        range_s: How far back to look, in seconds.
    """
    if metric.query is not None:
        return metric.query
    selector = ",".join(f'{name}="{value}"' for name, value in labels.items())

    def growth(counter: str) -> str:
        return f"sum(rate({counter}{{{selector}}}[{range_s}s]))"

    if metric.type == MetricType.UTILIZATION:
        return f"100 * {growth(BUSY_SHARE_SECONDS)}"
    if metric.type == MetricType.CONCURRENCY:
        return f"{growth(BUSY_SLOT_SECONDS)} + {growth(WAITING_REQUEST_SECONDS)}"
    if metric.type == MetricType.TOKEN_RATE:
        return growth(OUTPUT_TOKENS)
    raise ValueError(f"there is no query for {metric.type}")
