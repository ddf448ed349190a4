"""What a Prometheus that is gone, slow or wrong does to the pools that are measured by it, and to others."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from threading import Event, Thread

import pytest

from zerolayer_dev.testing.background import in_background
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.prometheus_proxy import Lie, PrometheusProxy
from zerolayer_dev.testing.scaling_trace import Seen, Trace
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.observe.load import STEP_S
from zerolayer_operator.observe.prometheus import TIMEOUT_S

REPLICAS, OFFERED = 6, 24.0
"""Half of six workers' slots; what was asked lately would fit on five."""

SHORTEST, LONGEST = 60, 120
AUTOSCALING = {
    "metric": {"type": "Utilization", "target": 50},
    "maxReplicas": 20,
    "scaleDown": {"minWindow": f"{SHORTEST}s", "maxWindow": f"{LONGEST}s"},
}
LIES = {"nan": Lie.NAN, "slow": Lie.SLOW, "more": Lie.MORE, "less": Lie.LESS}
SAYS = {
    "stopped": "can't be reached",
    "nan": "no number",
    "slow": "gives no answer within 5 s",
    "more": "a utilization above 100 %",
    "less": "over 3 times less than the workers' own",
}
INTERVAL_S = STEP_S + TIMEOUT_S + 2
"""From one look to the next, the time that a look may take, and a second each for reconcile and trace."""

LIES_FOR_S = LONGEST + 60
"""Long enough for autoscalers that believe it to give up workers, were it not for the floor."""


@dataclass
class Pace:
    """How soon the operator does the rest of its work.

    Attributes:
        healthz_s: What its answers took.
        corrected_s: What it took until an edit of another pool's child was undone.
    """

    healthz_s: list[float] = field(default_factory=list[float])
    corrected_s: list[float] = field(default_factory=list[float])


@contextmanager
def measured(process: OperatorProcess, other: Pool) -> Iterator[Pace]:
    """Measures the operator's pace while the context lasts."""
    pace, ended = Pace(), Event()

    def ask() -> None:
        while not ended.wait(0.1):
            began = time.monotonic()
            process.ping()
            pace.healthz_s.append(time.monotonic() - began)

    def edit() -> None:
        while not ended.wait(2):
            pace.corrected_s.append(correction(other))

    threads = [Thread(target=ask), Thread(target=edit)]
    for thread in threads:
        thread.start()
    try:
        yield pace
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def correction(pool: Pool) -> float:
    """Edits a pool's budget of disruptions by hand, and returns when the operator has undone it."""
    named = ("-n", pool.namespace, "pdb", pool.name)

    def allowed() -> object:
        return json.loads(pool.kubectl("get", *named, "-o", "json"))["spec"]["maxUnavailable"]

    before = allowed()
    began = time.monotonic()
    pool.kubectl("patch", *named, "--type=merge", '--patch={"spec":{"maxUnavailable":7}}')
    wait_for(allowed, until=lambda now: now == before, what="the budget as it was", seconds=30, interval=0.1)
    return time.monotonic() - began


def is_wide(seen: Seen) -> bool:
    return seen.window_s == LONGEST and seen.tuned.get("reason") == "LoadUnknown"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.promise("metrics-lie")
def test_no_lie_takes_workers_away(stage, operator: Callable[..., OperatorProcess], figures) -> None:
    """A Prometheus that is gone, tells NaN, takes 10 s or is off by 100 times widens the window at once.

    Its pools keep the workers that the last good figures asked for, say so, and hold up no other pool.
    """
    with ExitStack() as ending:
        loads = {name: SharedLoad(lambda _: OFFERED) for name in SAYS}
        node = stage.under_load(loads)
        prometheus, stopped = stage.prometheus(node), stage.prometheus(node, "stopped")
        proxies = {name: PrometheusProxy(lambda: prometheus.url) for name in LIES}
        for proxy in proxies.values():
            ending.enter_context(in_background(proxy.serve()))
        addresses = {name: proxy.address for name, proxy in proxies.items()} | {"stopped": stopped.url}
        process = operator(prometheus_addresses=",".join(addresses.values()))
        pools = {name: stage.pool(name, replicas=REPLICAS) for name in loads}
        other = stage.pool("other", replicas=0)
        for pool in (*pools.values(), other):
            pool.wait_phase("Ready")
        node.begin_earlier(prometheus, stopped)
        trace = ending.enter_context(Trace(stage.api, stage.namespace).following())
        for name, pool in pools.items():
            own = AUTOSCALING | {"prometheus": {"address": addresses[name]}}
            stage.autoscale(pool, own, addresses[name])
        for name in pools:
            narrow(trace, name)

        with measured(process, other) as before:
            time.sleep(20)
        began = time.monotonic()
        stopped.stop()
        for name, lie in LIES.items():
            proxies[name].lie = lie
        with measured(process, other) as during:
            time.sleep(LIES_FOR_S)
        healed = time.monotonic()
        for proxy in proxies.values():
            proxy.lie = Lie.NOTHING
        for name in LIES:
            wait_for(
                lambda name=name: trace.last(name).tuned["status"] == "True",
                what=f"{name} healed",
                seconds=90,
            )
        known = time.monotonic()
    for name in pools:
        lied = [seen for seen in trace.seen[name] if began < seen.at < healed]
        wide = next((seen.at for seen in lied if is_wide(seen)), float("inf"))
        figures(
            lie=name,
            wide_after_s=wide - began,
            replicas=[size for _, size in trace.changes(name, lambda seen: seen.replicas, began)],
            fewest=min(seen.replicas for seen in lied),
            floor=[floor for _, floor in trace.changes(name, lambda seen: seen.floor, began)],
            says=lied[-1].tuned["message"],
        )
    figures(
        known_again_after_s=known - healed,
        healthz_median_ms=1000 * median(during.healthz_s),
        healthz_longest_ms=1000 * max(during.healthz_s),
        healthz_longest_before_ms=1000 * max(before.healthz_s),
        corrections=len(during.corrected_s),
        correction_median_s=median(during.corrected_s),
        correction_longest_s=max(during.corrected_s),
        correction_median_before_s=median(before.corrected_s),
    )
    for name in pools:
        lied = [seen for seen in trace.seen[name] if began < seen.at < healed]
        assert any(is_wide(seen) for seen in lied if seen.at < began + INTERVAL_S), name
        assert all(is_wide(seen) for seen in lied if seen.at > began + INTERVAL_S), name
        assert min(seen.replicas for seen in lied) >= REPLICAS, name
        assert SAYS[name] in lied[-1].tuned["message"], lied[-1].tuned
    # A hang of the loop would be as long as one of Prometheus.
    assert max(during.healthz_s) < TIMEOUT_S / 2
    assert max(during.corrected_s) < STEP_S


def narrow(trace: Trace, pool: str) -> None:
    wait_for(lambda: trace.last(pool).window_s == SHORTEST, what=f"the window of {pool}", seconds=150)
