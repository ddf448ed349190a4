"""What goes wrong between an autoscaler, its pool and people, on a real autoscaler with a real operator."""

import re
import time
from collections.abc import Callable
from itertools import cycle

import pytest

from zerolayer_dev.testing import hpa_record
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.external_metrics import ExternalMetrics
from zerolayer_dev.testing.metrics_api import Answer
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.scaled_pools import (
    CONTROLLER_WINDOW_S,
    TARGET,
    ScaledPool,
    asks,
    load_for,
)
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_node import SimulatedNode

pytestmark = pytest.mark.promise("field-failures")

Start = Callable[..., OperatorProcess]
Make = Callable[..., ScaledPool]
SHORT = {"mode": "Fixed", "fixedWindow": "3s"}


def test_replicas_edited_by_hand(
    start: Start, make: Make, metrics: ExternalMetrics, audit: AuditLog, account: Account, figures
) -> None:
    """A size that a hand sets, even 0, does not last, and the operator fights no autoscaler over it.

    An autoscaler leaves a target alone that was scaled to 0: kubernetes/kubernetes#73614 and #110278.
    """
    start("operator")
    metrics.answer = asks(2.9)
    pool = make(scaleDown=SHORT)
    pool.wait_size(3)
    pool.wait_workers(3)
    since = audit.mark()
    for hand in (1, 9):
        pool.scale_by_hand(hand)
        pool.wait_size(3)
    mended = pool.resized(audit, hpa_record.CONTROLLER, since)
    assert pool.resized(audit, account.user, since) == 0
    pool.scale_by_hand(0)
    pool.wait_size(3)
    own = pool.resized(audit, account.user, since)
    figures(put_right_by_the_autoscaler=mended, by_the_operator=own)
    assert own == 1
    assert pool.warnings() == []


def test_oscillation_between_n_and_n_minus_1_at_constant_load(
    start: Start, make: Make, metrics: ExternalMetrics, audit: AuditLog, figures
) -> None:
    """A constant load whose noise crosses the border between two sizes does not make the pool swing.

    Noise of a few per cent had pods come and go every 15 s: llm-d/llm-d-autoscaling#1427.
    """
    start("operator")
    noise = cycle((1.15, 0.85, 0.85))
    metrics.answer = lambda *_: load_for(next(noise))
    pool = make(scaleDown={"minWindow": "5s", "maxWindow": "8s"})
    pool.wait_size(2)
    pool.wait_workers(2)
    since, asked = audit.mark(), len(metrics.queries)
    seen = pool.sizes(25)
    changes = pool.resized(audit, hpa_record.CONTROLLER, since)
    figures(changes=changes, looks=len(metrics.queries) - asked, sizes=sorted(seen))
    assert changes == 0
    assert len(metrics.queries) - asked > 12


def test_pending_workers_taken_for_capacity(
    start: Start, make: Make, node: SimulatedNode, metrics: ExternalMetrics, figures
) -> None:
    """Workers that can't start are not taken for capacity: 2 full ones ask for 3, not for 4, 8 and 16.

    An average over ready workers times all of them doubles the pool at each look: vllm-project/aibrix#2670.
    """
    node.room = 2
    start("operator")
    metrics.answer = asks(2)
    pool = make(minReplicas=2, maxReplicas=20)
    pool.wait_workers(2)
    # Full, whatever comes: all that two workers can say.
    metrics.answer = lambda *_: Answer((2 * 100_000,))
    pool.wait_size(3)
    asked = len(metrics.queries)
    seen = pool.sizes(15)
    figures(sizes=sorted(seen), looks=len(metrics.queries) - asked, ready=pool.status["readyReplicas"])
    assert seen == {3}
    assert len(metrics.queries) - asked > 8
    assert pool.autoscaler["spec"]["minReplicas"] == 2


def test_behavior_absent(start: Start, make: Make, metrics: ExternalMetrics, figures) -> None:
    """Rules that a hand takes from the autoscaler are put back; until then the controller's own delay holds.

    KServe's autoscalers have none, whatever their users ask for: kserve/kserve#6246.
    """
    operator = start("operator")
    metrics.answer = asks(3)
    pool = make(scaleDown={"minWindow": "40s", "maxWindow": "50s"})
    pool.wait_size(3)
    pool.wait_workers(3)
    made = pool.autoscaler["spec"]["behavior"]
    pool.patch_autoscaler({"op": "remove", "path": "/spec/behavior"})
    back = pool.wait(
        lambda: pool.autoscaler["spec"].get("behavior"), bool, what="its rules to be back", seconds=20
    )
    assert back == made

    operator.kill()
    pool.patch_autoscaler({"op": "remove", "path": "/spec/behavior"})
    metrics.answer = asks(1)
    removed = time.monotonic()
    pool.wait_size(1, seconds=CONTROLLER_WINDOW_S + 15)
    lasted = time.monotonic() - removed
    start("successor")
    pool.wait(
        lambda: pool.autoscaler["spec"].get("behavior"),
        lambda seen: seen == made,
        what="its rules to be back",
        seconds=20,
    )
    figures(seconds_without_rules_until_it_shrank=lasted, controller_window_s=CONTROLLER_WINDOW_S)
    assert lasted > CONTROLLER_WINDOW_S - 2


def test_max_replicas_below_the_present_size(
    start: Start, make_old: Make, load: SharedLoad, prometheus: Prometheus, figures
) -> None:
    """A pool whose most is set below its size and its hold shrinks to it, whether its load is known or not.

    A least above the most is refused, and the two sizes fought each other: kedacore/keda#5288.
    """
    # Five workers' slots at their target, and with what random arrivals need beside it all that they have.
    load.offered = lambda _: 28.0
    start("operator", prometheus_addresses=prometheus.url)
    pool = make_old(5, scaleDown={"minWindow": "3s", "maxWindow": "5s"})
    pool.wait_condition("ScalingTuned", "True")
    first = pool.wait_scaling(lambda seen: seen.get("hold") == 5, what="a hold")

    pool.change(autoscaling={"maxReplicas": 3})
    pool.wait_size(3, seconds=20)
    pool.wait_scaling(lambda seen: seen.get("hold") == 3, what="a hold within the bounds")
    prometheus.stop()
    pool.wait_condition("ScalingTuned", "False", seconds=45)
    pool.change(autoscaling={"maxReplicas": 2})
    pool.wait_size(2, seconds=20)
    found = pool.wait_scaling(lambda seen: seen.get("hold") == 2, what="a hold within the bounds")
    spec = pool.autoscaler["spec"]
    figures(
        hold_before=first["hold"], hold=found["hold"], least=spec["minReplicas"], most=spec["maxReplicas"]
    )
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 2)
    assert pool.condition("Degraded")["status"] == "False"
    assert all("can't be reached" in told for told in pool.warnings())


def test_two_windows_in_series(
    start: Start,
    make_old: Make,
    metrics: ExternalMetrics,
    load: SharedLoad,
    prometheus: Prometheus,
    figures,
) -> None:
    """The range of a rate and the autoscaler's window add up, and nothing else is added to them.

    Whoever tunes the one alone is surprised by the other: kubernetes/enhancements#2645.
    """
    window_s = 10
    # Two workers' slots at their target.
    load.offered = lambda _: 11.2
    start("operator", prometheus_addresses=prometheus.url)
    pool = make_old(2, maxReplicas=2, scaleDown={"mode": "Fixed", "fixedWindow": f"{window_s}s"})
    autoscaler = pool.wait(lambda: pool.autoscaler, bool, what="an autoscaler", seconds=30)
    query = autoscaler["metadata"]["annotations"]["zerolayer.dev/metric-query"]
    range_s = int(re.findall(r"\[(\d+)s\]", query)[0])
    metrics.answer = lambda *_: load_for((prometheus.value(query) or 0) / TARGET)
    assert pool.sizes(5) == {2}

    ended = time.time()
    load.offered = lambda _: 0.0
    pool.wait_size(1, seconds=range_s + window_s + 10)
    lasted = time.time() - ended
    figures(range_s=range_s, window_s=window_s, seconds_until_it_shrank=lasted)
    assert window_s + range_s / 4 < lasted < window_s + range_s
