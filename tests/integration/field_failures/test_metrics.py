"""What goes wrong with the figures that autoscaled pools go by, on a real Prometheus and autoscaler."""

import math
from collections.abc import Callable
from itertools import cycle

import pytest

from zerolayer_dev.testing.external_metrics import ExternalMetrics
from zerolayer_dev.testing.metrics_api import Answer, Fault
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.scaled_pools import ScaledPool, asks
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_node import SimulatedNode

pytestmark = pytest.mark.promise("field-failures")

Start = Callable[..., OperatorProcess]
Make = Callable[..., ScaledPool]
WINDOWS = {"minWindow": "3s", "maxWindow": "5s"}
SIZE = 3


@pytest.fixture
def known(start: Start, make_old: Make, prometheus: Prometheus) -> Callable[[], ScaledPool]:
    """Makes a pool of three workers, whose load is known from Prometheus."""

    def make_known() -> ScaledPool:
        start("operator", prometheus_addresses=prometheus.url)
        pool = make_old(SIZE, scaleDown=WINDOWS)
        pool.wait_condition("ScalingTuned", "True")
        return pool

    return make_known


def wait_unknown(pool: ScaledPool, why: str, seconds: float, hold: int = SIZE) -> None:
    """Waits until its load is told to be unknown, which widens the window and holds the size."""
    found = pool.wait_condition("ScalingTuned", "False", reason="LoadUnknown", seconds=seconds)
    assert why in found["message"]
    told = pool.wait_scaling(lambda seen: seen.get("window") == "5s", what="the longest window")
    assert told["hold"] == hold
    assert "utilization" not in told
    assert "flatness" not in told


def test_metrics_outage(
    known: Callable[[], ScaledPool], metrics: ExternalMetrics, prometheus: Prometheus, figures
) -> None:
    """While metrics are away, and until there are good ones again, a pool keeps the size of the last good.

    Pools shrank to their least at the busiest hour, kedacore/keda#3065 and #965, or after the outage,
    grafana/mimir#7691.
    """
    pool = known()
    prometheus.stop()
    faults = cycle((Answer(), Answer(fault=Fault.ERROR), Answer(fault=Fault.DROPPED)))
    metrics.answer = lambda *_: next(faults)
    asked = len(metrics.queries)
    seen = pool.sizes(12)
    wait_unknown(pool, "can't be reached", seconds=45)

    # The autoscaler gets figures again, and they are of a pool that nobody asks: the operator has none yet.
    metrics.answer = asks(0.5)
    after = pool.sizes(10)
    figures(sizes=sorted(seen), looks_without=len(metrics.queries) - asked, sizes_after=sorted(after))
    assert seen == after == {SIZE}


def test_nan_at_zero_load(
    known: Callable[[], ScaledPool], load: SharedLoad, node: SimulatedNode, figures
) -> None:
    """No load at all is the number 0, which is not flat; a NaN is no load at all, but unknown.

    Ratios at zero load made autoscalers jump, llm-d/llm-d-autoscaling#149, and workers themselves tell NaN,
    ggml-org/llama.cpp#11915.
    """
    load.offered = lambda _: 0.0
    pool = known()
    told = pool.wait_scaling(lambda seen: seen.get("utilization") == 0, what="no load")
    assert (told["flatness"], told["window"]) == ("0.00", "5s")

    node.lie = lambda metric, value: math.nan if metric == "zero_layer_busy_slot_seconds_total" else value
    wait_unknown(pool, "what is no number", seconds=90)
    figures(utilization_percent=told["utilization"], flatness_at_zero=told["flatness"])


def test_figures_outside_of_physical_bounds(
    known: Callable[[], ScaledPool], node: SimulatedNode, figures
) -> None:
    """Figures that can't be true, such as more busy slots than there are, count as unknown.

    A metric that rose to tens of thousands was taken for load: llm-d/llm-d-autoscaling#149.
    """
    pool = known()
    # A quarter of the slots is busy, so five times as many is more than there are.
    node.lie = lambda metric, value: value if metric == "zero_layer_slots" else 5 * value
    wait_unknown(pool, "Prometheus tells", seconds=90)
    figures(told=pool.condition("ScalingTuned")["message"])


@pytest.mark.long
def test_figures_more_than_3_times_off_the_workers_own(
    known: Callable[[], ScaledPool], node: SimulatedNode, figures
) -> None:
    """Figures that are possible, but over 3 times more than what the workers tell the operator, are unknown.

    As with a Prometheus that scrapes the same workers under several names, so that sums count them twice.
    """
    # From the beginning on: a counter that is that much more at once has grown by more than it can.
    node.lie = lambda metric, value: value if metric == "zero_layer_slots" else 3.8 * value
    pool = known()
    # The operator has figures of its own only once it has asked the workers for a minute. Until then these
    # ask for one worker more, which stays.
    wait_unknown(pool, "over 3 times more than the workers' own", seconds=150, hold=SIZE + 1)
    figures(told=pool.condition("ScalingTuned")["message"])
