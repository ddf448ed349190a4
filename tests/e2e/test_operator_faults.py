"""The operator is killed, or loses its API server, while pools start: the pools notice nothing."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.release import Release, Values
from zerolayer_dev.testing.service_network import wait_until_followed
from zerolayer_dev.testing.waiting import wait_for

KILLS = 10
KILLS_EACH = 3
LEASE_SECONDS = 5
LONGEST_LIFE_S = 12
"""It takes about 8 s until a new pod leads; then what there is to do for a pool is done in a moment."""
OUTAGE_SECONDS = 30


def children(pool: Pool) -> list[str]:
    """Returns kind and name of what belongs to the pool, with its own name and revision left out."""
    kinds = (
        "deployments,services,horizontalpodautoscalers,poddisruptionbudgets,networkpolicies,serviceaccounts"
    )
    listed = pool.kubectl(
        "-n", pool.namespace, "get", kinds, "-l", f"zerolayer.dev/pool={pool.name}", "-o", "name"
    )
    revision = pool.status["servingRevision"]
    return sorted(line.replace(pool.name, "POOL").replace(revision, "REVISION") for line in listed.split())


def decisions(pool: Pool) -> Counter[tuple[str, str]]:
    """Counts the operator's Events about the pool by what they say."""
    return Counter((event["reason"], event.get("message", "")) for event in pool.events())


def still_once(pool: Pool) -> bool:
    """Tells whether each decision about the pool has exactly one Event."""
    counts = decisions(pool)
    return bool(counts) and set(counts.values()) == {1}


def wait_out(seconds: float) -> None:
    """Lets time pass: here the fault itself lasts that long."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, what="the fault to end", seconds=2 * seconds + 1)


def strike(pool: Pool, release: Release, moments: random.Random, most: int) -> list[float]:
    """Kills the operator while a pool starts, and returns when: random seconds after the pool's making."""
    began = time.monotonic()
    struck: list[float] = []
    while len(struck) < most:
        wait_out(moments.uniform(0, LONGEST_LIFE_S))
        if pool.status.get("phase") == "Ready":
            break
        if release.kill():
            struck.append(round(time.monotonic() - began, 1))
    return struck


@pytest.fixture
def nimble(release: Release, chart_values: Values) -> Iterator[Release]:
    """An operator that leads soon after it took a killed one's place, so that it is killed at its work."""
    release.install(chart_values | {"leaseDuration": LEASE_SECONDS})
    yield release
    release.install(chart_values)


@pytest.mark.promise("operator-killed")
def test_operator_killed_while_pools_start(
    pool: Callable[[str], Pool], nimble: Release, serving_pool: Pool, figures: Callable[..., None]
) -> None:
    """Killed at ten random moments between a pool's making and Ready: same children, one Event each."""
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    pools: list[Pool] = []
    struck: list[list[float]] = []
    while (left := KILLS - sum(map(len, struck))) > 0:
        pools.append(pool(f"killed-{len(pools)}"))
        struck.append(strike(pools[-1], nimble, moments, min(left, KILLS_EACH)))
    last = time.monotonic()
    for killed in pools:
        killed.wait_ready(1)
    figures(
        seed=seed,
        pools=len(pools),
        killed_at_s=struck,
        ready_after_last_s=time.monotonic() - last,
        events=sum(len(killed.events()) for killed in pools),
    )

    for killed in pools:
        assert children(killed) == children(serving_pool)
        assert still_once(killed), decisions(killed)


@pytest.mark.promise("api-server-gone")
def test_api_server_gone_while_a_pool_starts(
    pool, cluster: LocalCluster, release: Release, serving_pool: Pool, figures
) -> None:
    """With the API server gone for 30 s a starting pool still ends Ready, with one Event per decision."""
    orphan = pool("orphan")
    orphan.wait(orphan.deployments, bool, what="a Deployment", seconds=60)
    url = serving_pool.url
    with release.upheaval():
        cluster.stop_apiserver()
        try:
            wait_out(OUTAGE_SECONDS)
        finally:
            cluster.start_apiserver()
            wait_until_followed(cluster)
    back_at = time.monotonic()
    orphan.wait_ready(1)
    figures(outage_s=OUTAGE_SECONDS, ready_after_outage_s=time.monotonic() - back_at)

    assert serving_pool.url == url
    assert children(orphan) == children(serving_pool)
    assert still_once(orphan), decisions(orphan)
    assert "Traceback" not in release.logs()
