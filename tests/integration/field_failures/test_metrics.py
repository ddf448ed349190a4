"""What goes wrong with the figures that autoscaled pools go by, on a real Prometheus and autoscaler."""

from collections.abc import Callable

import pytest

from zerolayer_dev.testing.metrics_thread import SettableMetrics
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.phased_workers import PhasedWorkers
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.scaled_pools import ScaledPool, asks

pytestmark = pytest.mark.promise("field-failures")

Start = Callable[..., OperatorProcess]
Make = Callable[..., ScaledPool]
WINDOWS = {"minWindow": "3s", "maxWindow": "5s"}
SIZE = 3


@pytest.fixture
def known(
    start: Start, make: Make, metrics: SettableMetrics, workers: PhasedWorkers, prometheus: Prometheus
) -> Callable[[], ScaledPool]:
    """Makes a pool of three workers, whose load is known from Prometheus."""

    def make_known() -> ScaledPool:
        metrics.answer = asks(SIZE)
        start("operator", prometheus_addresses=prometheus.url)
        pool = make(scaleDown=WINDOWS)
        pool.wait_workers(SIZE)
        pool.wait(lambda: workers.caught_up, bool, what="Prometheus to know it", seconds=60)
        pool.wait_condition("ScalingTuned", "True")
        return pool

    return make_known


def wait_unknown(pool: ScaledPool, why: str, seconds: float) -> None:
    """Waits until its load is told to be unknown, which widens the window and holds the size."""
    found = pool.wait_condition("ScalingTuned", "False", reason="LoadUnknown", seconds=seconds)
    assert why in found["message"]
    told = pool.wait_scaling(lambda seen: seen.get("window") == "5s", what="the longest window")
    assert told["hold"] == SIZE
    assert "utilization" not in told
    assert "flatness" not in told


def test_figures_outside_of_physical_bounds(
    known: Callable[[], ScaledPool], workers: PhasedWorkers, figures
) -> None:
    """Figures that can't be true, such as more busy slots than there are, count as unknown.

    A metric that rose to tens of thousands was taken for load: llm-d/llm-d-autoscaling#149.
    """
    pool = known()
    # A quarter of the slots is busy, so five times as many is more than there are.
    workers.lie = lambda metric, value: value if metric == "zero_layer_slots" else 5 * value
    wait_unknown(pool, "Prometheus tells", seconds=90)
    figures(told=pool.condition("ScalingTuned")["message"])
