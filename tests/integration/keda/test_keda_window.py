"""The delay before a scale-down follows the load of pools that the real KEDA sizes, by a real Prometheus.

Workers are simulated, in real time: each pod has an address of its own at which Prometheus, which discovers
pods as in any cluster, and the operator find its metrics.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.background import in_background
from zerolayer_dev.testing.keda import USER
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_node import SimulatedNode
from zerolayer_dev.testing.waiting import wait_for

SLOTS, SERVICE_S = 16, 2.0
FLAT, TWIN, BURSTY = "flat", "twin", "bursty"
HPA, SCALED = "horizontalpodautoscalers", "scaledobjects"
NORMAL, HALF, BURST = 40.0, 20.0, 160.0
METRIC = {"type": "Utilization", "target": 40}
WIDEST, STEPS, DWELL_S = 300, [300, 240, 180, 120, 60], 60
AT_ONCE_S = 120


def in_bursts(at: float) -> float:
    """A minute of a ninefold load in three."""
    return 72.0 if at % 180 < 60 else 8.0


@pytest.fixture(scope="module")
def prometheus(api: LocalCluster, prometheus: Prometheus) -> Prometheus:
    """Prometheus, which finds workers and labels their series as by a PodMonitor of the operator's."""
    relabelled = [
        {
            "source_labels": ["__meta_kubernetes_pod_container_port_name", "__meta_kubernetes_pod_phase"],
            "regex": "ops;Running",
            "action": "keep",
        },
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
        {"regex": "__meta_kubernetes_pod_label_(zerolayer_dev_.+)", "action": "labelmap"},
    ]
    workers = {
        "job_name": "workers",
        "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": str(api.kubeconfig)}],
        "relabel_configs": relabelled,
    }
    prometheus.start_with(
        {"global": {"scrape_interval": "5s", "scrape_timeout": "4s"}, "scrape_configs": [workers]}
    )
    return prometheus


@pytest.fixture
def load(api: LocalCluster, namespace: str) -> Iterator[Mapping[str, SharedLoad]]:
    """What is asked of each pool."""
    shapes: dict[str, Callable[[float], float]] = {
        FLAT: lambda _: NORMAL,
        TWIN: lambda _: NORMAL,
        BURSTY: in_bursts,
    }
    loads = {name: SharedLoad(shape, SLOTS, SERVICE_S) for name, shape in shapes.items()}
    with in_background(SimulatedNode(api, namespace, loads).serve()):
        yield loads


class Watch:
    """KEDA's autoscalers as time goes by."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.windows: dict[str, list[tuple[float, int]]] = {}
        self.sizes: dict[str, int] = {}

    def look(self) -> "Watch":
        """Takes down what has changed: windows with when they were first seen, sizes as they are."""
        said = self._pool.kubectl("-n", self._pool.namespace, "get", HPA, "-o", "json")
        for found in json.loads(said)["items"]:
            name = found["metadata"]["name"].removeprefix("keda-hpa-")
            window = found["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
            seen = self.windows.setdefault(name, [])
            if not seen or seen[-1][1] != window:
                seen.append((time.monotonic(), window))
            self.sizes[name] = found["status"].get("desiredReplicas", 0)
        return self

    def until(self, holds: Callable[["Watch"], bool], what: str, seconds: float) -> float:
        """Looks until something holds, and returns how many seconds that took."""
        began = time.monotonic()
        wait_for(self.look, until=holds, what=what, seconds=seconds, interval=1.0)
        return time.monotonic() - began

    def __repr__(self) -> str:
        return f"windows {self.windows}, sizes {self.sizes}"


def sequence(windows: list[tuple[float, int]]) -> list[int]:
    return [window for _, window in windows]


@pytest.mark.promise("keda")
@pytest.mark.long
@pytest.mark.timeout(2400)
def test_window_of_a_scaled_object_follows_the_load(
    make: Callable[..., Pool],
    load: Mapping[str, SharedLoad],
    audit: AuditLog,
    account: Account,
    figures: Callable[..., None],
) -> None:
    """With KEDA a flat load narrows the window in steps, bursts keep it wide, a new one widens it at once."""
    since = audit.mark()
    common = {"minReplicas": 3, "maxReplicas": 12, "metric": METRIC}
    flat = make(FLAT, **common)
    make(TWIN, **common, scaleDown={"mode": "Fixed", "fixedWindow": f"{WIDEST}s"})
    make(BURSTY, **common)
    watch = Watch(flat)
    narrow_s = watch.until(
        lambda seen: seen.windows.get(FLAT, [(0, 0)])[-1][1] == STEPS[-1], "the narrowest window", 900
    )
    assert sequence(watch.windows[FLAT]) == STEPS
    dwells = [later - before for (before, _), (later, _) in pairwise(watch.windows[FLAT][1:])]

    grown = dict(watch.sizes)
    load[FLAT].offered = load[TWIN].offered = lambda _: HALF
    dropped = time.monotonic()
    shrunk_s = watch.until(lambda seen: seen.sizes[FLAT] < grown[FLAT], "the pool to shrink", 600)
    assert watch.sizes[TWIN] == grown[TWIN]

    load[FLAT].offered = lambda _: BURST
    before = len(watch.windows[FLAT])
    wide_s = watch.until(lambda seen: seen.windows[FLAT][-1][1] == WIDEST, "the widest window", AT_ONCE_S)
    widened = sequence(watch.windows[FLAT][before - 1 :])
    watch.until(lambda seen: seen.sizes[TWIN] < grown[TWIN], "its twin to shrink", 600)
    twin_s = time.monotonic() - dropped
    figures(
        seconds_to_narrowest=narrow_s,
        shortest_step_s=min(dwells),
        shrinks_after_s=shrunk_s,
        twin_with_300s_shrinks_after_s=twin_s,
        burst_widens_after_s=wide_s,
        widened=widened,
        windows_of_bursty=sequence(watch.windows[BURSTY]),
    )

    # The window is looked at once a second, by a client that is slower at times.
    assert min(dwells) > DWELL_S - 5
    assert sequence(watch.windows[BURSTY]) == [WIDEST]
    assert sequence(watch.windows[TWIN]) == [WIDEST]
    assert widened == sorted(widened)
    for name in (FLAT, TWIN, BURSTY):
        assert audit.writers(HPA, f"keda-hpa-{name}", since=since) == {USER}
        assert account.user in audit.writers(SCALED, name, since=since)
