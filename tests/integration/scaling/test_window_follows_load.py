"""The window follows the load: real operator, Prometheus, API server and HPA controller, simulated workers.

Real workers on two cores that others use, too, have no load that is flat because a test wants it so. These
here tell the operator and Prometheus what such workers would, at their own pace, from one source.
"""

import re
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.scaling_trace import Seen, Trace
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.waiting import wait_for

REPLICAS = 9
WINDOW = {"maxReplicas": 20, "scaleDown": {"minWindow": "60s", "maxWindow": "300s"}}
FIXED = {"maxReplicas": 20, "scaleDown": {"mode": "Fixed", "fixedWindow": "300s"}}
HIGH, LOW, BURST = 48.0, 40.0, 240.0
STEPS = [300, 240, 180, 120, 60]


class Dial:
    """A load that a test changes as it goes on."""

    def __init__(self, slots: float) -> None:
        self.slots = slots

    def __call__(self, _at: float) -> float:
        return self.slots


def bursty(at: float) -> float:
    """Two minutes out of six with six times the load of the others."""
    return 72.0 if at % 360 < 120 else 12.0


def window(seen: Seen) -> int | None:
    return seen.window_s


def told(seen: Seen) -> tuple[str | None, str | None]:
    return seen.scaling.get("window"), seen.scaling.get("flatness")


def wanted(flatness: float) -> int:
    """As documented: in whole steps of a minute."""
    return 300 - 60 * int(4 * flatness + 1e-9)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.promise("window-follows-load")
def test_the_window_follows_the_load(stage, operator: Callable[..., OperatorProcess], figures) -> None:
    """A flat load narrows the window in four steps, a bursty one keeps it wide, a burst widens it at once.

    And the flat pool shrinks sooner than its twin with a fixed window of 300 s.
    """
    dials = {"flat": Dial(HIGH), "twin": Dial(HIGH)}
    loads = {name: SharedLoad(dial) for name, dial in dials.items()} | {"bursty": SharedLoad(bursty)}
    node = stage.under_load(loads)
    prometheus = stage.prometheus(node)
    url = prometheus.url
    process = operator(prometheus_addresses=url)
    pools = {name: stage.pool(name, replicas=REPLICAS) for name in loads}
    for pool in pools.values():
        pool.wait_phase("Ready")
    node.begin_earlier(prometheus)
    with Trace(stage.api, stage.namespace).following() as trace:
        for name, pool in pools.items():
            stage.autoscale(pool, FIXED if name == "twin" else WINDOW, url)
        began = time.monotonic()

        def reach(what: str, until: Callable[[], bool], seconds: float) -> float:
            """Waits for something about the pools, and returns when it was so."""
            wait_for(until, what=what, seconds=seconds)
            return time.monotonic()

        reach("the shortest window", lambda: trace.last("flat").window_s == 60, 330)
        dials["flat"].slots = dials["twin"].slots = LOW
        dropped = time.monotonic()
        shrunk = reach("the flat pool to shrink", lambda: trace.last("flat").replicas < REPLICAS, 150)
        assert trace.last("twin").replicas == REPLICAS
        dials["flat"].slots = BURST
        burst = time.monotonic()
        widened = reach("a wider window", lambda: trace.last("flat").window_s != 60, 120)
        wide = reach("the widest window", lambda: trace.last("flat").window_s == 300, 90)
        dials["flat"].slots = LOW
        twin_shrunk = reach("the twin to shrink", lambda: trace.last("twin").replicas < REPLICAS, 400)
    narrowing = trace.changes("flat", window, began)[: len(STEPS)]
    after = [found for at, found in trace.changes("flat", told, burst) if at > burst + 1]
    figures(
        narrowed_at_s=[round(at - began) for at, _ in narrowing],
        shrunk_after_s=shrunk - dropped,
        twin_shrunk_after_s=twin_shrunk - dropped,
        widened_after_s=widened - burst,
        widest_after_s=wide - burst,
        told_after_burst=after,
        bursty_windows=[found for _, found in trace.changes("bursty", window, began)],
        bursty_replicas=[size for _, size in trace.changes("bursty", lambda seen: seen.replicas)],
        status_writes=writes(process),
        events=[event["message"] for event in pools["flat"].events() if event["reason"] == "ScalingTuned"],
    )
    assert [found for _, found in narrowing] == STEPS
    assert all(later - at > 57 for (at, _), (later, _) in pairwise(narrowing[1:])), narrowing
    assert {found for _, found in trace.changes("bursty", window, began)} == {300}
    assert shrunk - dropped < twin_shrunk - dropped
    assert all(int(width[:-1]) >= wanted(float(flat)) for width, flat in after if width and flat), after
    messages = [event["message"] for event in pools["flat"].events()]
    for before, then in pairwise(STEPS):
        (message,) = (text for text in messages if f"window {before}s → {then}s" in text)
        assert re.search(rf"flatness 1.00 over \d+m: {before}s → {then}s, a replay of the last", message)
    assert process.records("ERROR", "CRITICAL") == []


def writes(process: OperatorProcess) -> float:
    """Writes of pools' status, until now."""
    found = re.findall(
        r'^zerolayer_operator_api_writes_total\{kind="ZeroLayerPool".*\} (\S+)',
        process.metrics(),
        re.MULTILINE,
    )
    return sum(map(float, found))
