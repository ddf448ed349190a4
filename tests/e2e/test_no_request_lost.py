"""Requests outlive the pods they run on."""

import time

import pykube
import pytest

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing.load import EVERY_KIND, Load
from zerolayer_dev.testing.pools import DEMO_MODEL, Pool, is_ready, names

pytestmark = pytest.mark.promise("no-request-lost")

ANSWERS = 8
DYING_SECONDS = 1  # the kernel takes connections for a process until it has cleared it away


@pytest.fixture
def pair(pool) -> Pool:
    """Two ready workers."""
    made = pool("pair", replicas=2)
    made.wait_ready(2)
    return made


def wait_until_gone(pool: Pool, pod: str) -> None:
    pool.wait(
        lambda: names(pool.all_pods()), lambda seen: pod not in seen, what=f"{pod} to be gone", seconds=120
    )


def test_deleted_and_evicted_workers(pair: Pool, api: pykube.HTTPClient, figures) -> None:
    """A worker pod deleted or evicted under load costs no request and truncates no stream."""
    for how in ("delete", "evict"):
        victim = pair.pods()[0]["metadata"]["name"]
        with Load(pair.url, model=DEMO_MODEL) as load:
            load.wait_for_more(ANSWERS, seconds=120)
            if how == "delete":
                pair.kubectl("-n", pair.namespace, "delete", "pod", victim, "--wait=false")
            else:
                evict(api, pair.namespace, victim)
            wait_until_gone(pair, victim)
            pair.wait_ready(2)
            load.wait_for_more(ANSWERS, seconds=120)
        figures(how=how, clients=len(EVERY_KIND), requests=len(load.attempts), failed=len(load.failures))

        assert load.failures == []
        assert victim not in names(pair.pods())


def test_scale_down(pair: Pool, figures) -> None:
    """A scale-down under load costs no request and truncates no stream."""
    with Load(pair.url, model=DEMO_MODEL) as load:
        load.wait_for_more(ANSWERS, seconds=120)
        pair.kubectl("-n", pair.namespace, "scale", "zlp", pair.name, "--replicas=1")
        pair.wait(pair.all_pods, lambda pods: len(pods) == 1, what="one worker", seconds=120)
        load.wait_for_more(ANSWERS, seconds=120)
    figures(
        how="scale 2 to 1", clients=len(EVERY_KIND), requests=len(load.attempts), failed=len(load.failures)
    )

    assert load.failures == []


def test_killed_worker_loses_at_most_what_it_had_in_flight(pair: Pool, cluster: Cluster, figures) -> None:
    """A SIGKILLed worker loses at most the requests it had in flight."""
    victim = pair.pods()[0]
    container = victim["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    with Load(pair.url, model=DEMO_MODEL, retry_refused=True) as load:
        load.wait_for_more(ANSWERS, seconds=120)
        in_flight = load.in_flight()
        cluster.exec_in_node(["ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", container])
        killed_at = time.monotonic()
        pair.wait(
            lambda: all(is_ready(pod) for pod in pair.pods()),
            lambda ready: not ready,
            what="the killed worker to be noticed",
            seconds=60,
        )
        pair.wait_ready(2)
        load.wait_for_more(ANSWERS, seconds=120)
    lost = [attempt for attempt in load.attempts if attempt.failure]
    figures(
        how="SIGKILL",
        in_flight=in_flight,
        lost=len(lost),
        refused_connections=sum(attempt.refused for attempt in load.attempts),
        requests=len(load.attempts),
    )

    assert len(lost) <= in_flight
    assert all(attempt.started <= killed_at + DYING_SECONDS for attempt in lost), load.failures


def evict(api: pykube.HTTPClient, namespace: str, pod: str) -> None:
    """Evicts as `kubectl drain` does, so that the disruption budget has its say."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    api.post(version="v1", namespace=namespace, url=f"pods/{pod}/eviction", json=eviction).raise_for_status()
