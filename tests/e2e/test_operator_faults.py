"""The operator is killed, or loses its API server, while a pool starts: the pool notices nothing."""

import random
import time
from collections import Counter

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.release import Release
from zerolayer_dev.testing.service_network import wait_until_followed
from zerolayer_dev.testing.waiting import wait_for

KILLS = 3
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


@pytest.mark.promise("operator-killed")
def test_operator_killed_while_a_pool_starts(pool, release: Release, serving_pool: Pool, figures) -> None:
    """Killed with SIGKILL while a pool starts, the operator goes on: same children, one Event each."""
    killed = pool("killed")
    moments = []
    started = time.monotonic()
    for _ in range(KILLS):
        wait_out(random.uniform(0, 5))
        release.kill()
        moments.append(round(time.monotonic() - started, 1))
        if killed.status.get("phase") == "Ready":
            break
    killed.wait_ready(1)
    figures(killed_at_s=moments, ready_after_s=time.monotonic() - started, events=len(killed.events()))

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
