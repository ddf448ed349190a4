"""Metrics of each autoscaled pool, made from its figures at the moment of a scrape.

`prometheus_client`'s own gauges and counters would keep what was last set of a pool that is gone or of a
value that is no longer known, and could not begin at a total that an earlier process had reached.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.workqueue import PoolKey

PREFIX: Final = "zerolayer_operator_pool_"


@dataclass(frozen=True, slots=True)
class _Series:
    """A metric with one value of each pool; ``None`` leaves a pool out."""

    name: str
    help: str
    value: Callable[[Figures], float | None]
    family: type[GaugeMetricFamily] | type[CounterMetricFamily] = GaugeMetricFamily

    def of(self, pools: dict[PoolKey, Figures]) -> Metric:
        family = self.family(PREFIX + self.name, self.help, labels=["namespace", "pool"])
        for key, figures in pools.items():
            value = self.value(figures)
            if value is not None:
                family.add_metric([key.namespace, key.name], value)
        return family


_SERIES: Final = (
    _Series(
        "utilization",
        "Share of the ready workers' capacity in use, from 0 to 1.",
        lambda figures: figures.utilization,
    ),
    _Series(
        "offered_slots",
        "Slots that would be busy if no request waited.",
        lambda figures: figures.offered_slots,
    ),
    _Series(
        "slots",
        "Requests that the ready workers can run at once.",
        lambda figures: figures.slots,
    ),
    _Series(
        "scale_down_window_seconds",
        "Delay before a scale-down.",
        lambda figures: figures.window_s,
    ),
    _Series(
        "hold_replicas",
        "Fewest workers, where the operator holds more than minReplicas; otherwise 0.",
        lambda figures: figures.hold or 0,
    ),
    _Series(
        "floor_replicas",
        "Fewest workers that the autoscaler may leave, the hold included.",
        lambda figures: figures.floor,
    ),
    _Series(
        "flatness",
        "How flat the load has been, from 0 to 1.",
        lambda figures: figures.flatness,
    ),
    _Series(
        "load_known",
        "1 while the pool's load is known, otherwise 0.",
        lambda figures: figures.known,
    ),
    _Series(
        "replica_seconds_saved",
        "Replica-seconds that a fixed window of 300 s would have cost more; negative if less.",
        lambda figures: figures.saved_s,
    ),
    _Series(
        "first_token_p99_seconds",
        "99th percentile of the time to the first token of the last minute, with a latency penalty.",
        lambda figures: figures.first_token_p99_s,
    ),
    _Series(
        "latency_penalty",
        "What the pool's replica-time of the last minute is weighted with, at least 1.",
        lambda figures: figures.latency_penalty,
    ),
    _Series(
        "penalty_replica_seconds",
        "Replica-seconds that the latency penalty has added to those of the pool.",
        lambda figures: figures.penalty_s,
        CounterMetricFamily,
    ),
    _Series(
        "regrets",
        "Times the pool grew within one cold start after it had shrunk.",
        lambda figures: figures.regrets,
        CounterMetricFamily,
    ),
    _Series(
        "replica_seconds",
        "Replica-seconds of the pool, since the operator began to look.",
        lambda figures: figures.spent_s,
        CounterMetricFamily,
    ),
)


class PoolMetrics(Collector):
    """The figures of every autoscaled pool as metrics, for `prometheus_client.REGISTRY.register`.

    What is not known of a pool has no series, and neither has a pool that was forgotten.
    """

    def __init__(self) -> None:
        self._pools: dict[PoolKey, Figures] = {}

    def tell(self, key: PoolKey, figures: Figures) -> None:
        """Show these figures of a pool from now on; totals are absolute, and may begin above 0."""
        self._pools[key] = figures

    def forget(self, key: PoolKey) -> None:
        """Show nothing of a pool any more; one that was never told is fine."""
        self._pools.pop(key, None)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, those without a series too."""
        for series in _SERIES:
            yield series.of(self._pools)
        yield self._replicas()

    def _replicas(self) -> Metric:
        family = GaugeMetricFamily(
            PREFIX + "replicas",
            "Workers of the serving revision by state: those it is asked to have, and those that can answer.",
            labels=["namespace", "pool", "state"],
        )
        for key, figures in self._pools.items():
            family.add_metric([key.namespace, key.name, "wanted"], figures.wanted)
            family.add_metric([key.namespace, key.name, "ready"], figures.ready)
        return family
