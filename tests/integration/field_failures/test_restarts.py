"""What is lost when a part of the control loop restarts: nothing that pools need."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.external_metrics import ExternalMetrics
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.scaled_pools import ScaledPool, asks
from zerolayer_dev.testing.shared_load import SharedLoad

pytestmark = pytest.mark.promise("field-failures")

Start = Callable[..., OperatorProcess]
Make = Callable[..., ScaledPool]
MANAGER = "kube-controller-manager"
DWELL_S, LOOK_S = 60, 15


def seconds_since(wire: str) -> float:
    """Seconds since a moment that Kubernetes has written."""
    return (datetime.now(UTC) - datetime.fromisoformat(wire)).total_seconds()


def narrowed(pool: ScaledPool, window_s: int, hold: int, ago_s: float) -> dict[str, object]:
    """Has a pool look as if its operator had narrowed the window some time ago; returns its status."""
    pool.patch_autoscaler(
        {"op": "replace", "path": "/spec/behavior/scaleDown/stabilizationWindowSeconds", "value": window_s},
        {"op": "replace", "path": "/spec/minReplicas", "value": hold},
    )
    changed = datetime.now(UTC) - timedelta(seconds=ago_s)
    scaling = {
        "window": f"{window_s}s",
        "hold": hold,
        "lastChange": changed.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "why": "flatness 0.93 over 20m",
        "regrets": 7,
        "replicaSecondsSaved": 12345,
    }
    patch = json.dumps({"status": {"scaling": scaling}})
    pool.kubectl(
        "-n", pool.namespace, "patch", "zlp", pool.name,
        "--subresource=status", "--type=merge", f"--patch={patch}",
    )  # fmt: skip
    return scaling


def test_restart_of_the_operator(start: Start, make: Make, metrics: ExternalMetrics, figures) -> None:
    """A new operator leaves window and hold as they stand until it has looked itself, and counts on.

    A restart in the middle of an outage took a pool to its least: kedacore/keda#6961.
    """
    first = start("first")
    metrics.answer = asks(2)
    pool = make(minReplicas=1)
    pool.wait_size(2)
    pool.wait_workers(2)
    pool.wait_scaling(bool, what="the window")
    first.kill()
    before = narrowed(pool, 120, 2, ago_s=90)
    events, spec = pool.tuned(), pool.autoscaler["spec"]
    assert spec["minReplicas"] == 2

    start("second")
    began = time.monotonic()
    while time.monotonic() - began < 20:
        assert pool.autoscaler["spec"] == spec
        assert before.items() <= pool.scaling.items()
        time.sleep(0.5)
    assert pool.tuned() == events
    figures(seconds_watched=20, writes_of_the_autoscaler=0, events=0, regrets=pool.scaling["regrets"])


def test_restart_of_the_operator_within_the_dwell(
    start: Start, make_old: Make, prometheus: Prometheus, figures
) -> None:
    """A new operator knows when the window was narrowed last: the next step is neither early nor late."""
    first = start("first", prometheus_addresses=prometheus.url)
    pool = make_old(2)
    pool.wait_condition("ScalingTuned", "True")
    first.kill()
    before = narrowed(pool, 240, 2, ago_s=DWELL_S - 20)

    start("second", prometheus_addresses=prometheus.url)
    pool.wait_scaling(lambda seen: seen["window"] != "240s", what="another window", seconds=60)
    after = pool.scaling
    dwelt = seconds_since(str(before["lastChange"]))
    figures(seconds_from_step_to_step=dwelt, window=after["window"], regrets=after["regrets"])
    assert after["window"] == "180s"
    assert DWELL_S <= dwelt < DWELL_S + 2 * LOOK_S
    assert after["regrets"] == before["regrets"]
    assert after["replicaSecondsSaved"] >= 12345
    assert sum("window 240s → 180s" in message for message in pool.tuned()) == 1


def test_restart_of_the_controller_manager(
    api: LocalCluster,
    start: Start,
    make_old: Make,
    metrics: ExternalMetrics,
    load: SharedLoad,
    prometheus: Prometheus,
    figures,
) -> None:
    """When the autoscaler has forgotten what it recommended, the hold still keeps what the last peak needs.

    The controller has its recommendations in memory alone; its new one begins with the size that it finds.
    """
    now = time.time()
    load.offered = lambda at: 24.0 if now - 180 <= at < now - 60 else 4.0
    start("operator", prometheus_addresses=prometheus.url)
    pool = make_old(4, scaleDown={"minWindow": "3s", "maxWindow": "5s"})
    told = pool.wait_scaling(lambda seen: "utilization" in seen, what="the load")
    assert told["hold"] == 4

    metrics.answer = asks(0.5)
    seen = pool.sizes(8)
    api.kill(MANAGER)
    killed = time.time()
    pool.wait(
        lambda: sum(query.at > killed for query in metrics.queries),
        lambda count: count > 2,
        what="a new controller to look",
        seconds=60,
    )
    seen |= pool.sizes(10)
    figures(hold=told["hold"], sizes=sorted(seen), looks=sum(query.at > killed for query in metrics.queries))
    assert seen == {4}
    assert pool.scaling["hold"] == 4
