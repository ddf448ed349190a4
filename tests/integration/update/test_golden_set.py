"""The golden set of an update: its Job on a real control plane, and reports as its pod would leave them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import golden
from zerolayer_dev.testing.update_pool import UpdatedPool
from zerolayer_dev.testing.waiting import wait_for

Make = Callable[..., UpdatedPool]
UPDATE = {
    "strategy": "Canary",
    "soak": "5s",
    "maxSoak": "60s",
    "minSamples": 1,
    "blueRetention": "2s",
    "failedRetention": "2s",
    "golden": {"configMap": {"name": "facts"}, "minHitRate": 80},
    "checks": {"errorRate": False, "latency": False, "consistency": False},
}


class Jobs:
    """What asks golden sets in a namespace, and the kubelet that would run it."""

    def __init__(self, api: LocalCluster, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def found(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind that belong to a golden set."""
        listed = self._api.kubectl(
            "-n", self._namespace, "get", kind, "-l", "zerolayer.dev/golden", "-o", "json"
        )
        return json.loads(listed)["items"]

    def report(self, **fields: Any) -> None:
        """Has the Job's pod end with a report."""
        (pod,) = wait_for(lambda: self.found("pods"), what="the Job's pod", seconds=30)
        ended = golden.pod(golden.report(**fields))["status"]["containerStatuses"][0]
        container = {**ended, "image": "w", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Succeeded", "containerStatuses": [container]}
        self._api.kubectl(
            "-n",
            self._namespace,
            "patch",
            "pod",
            pod["metadata"]["name"],
            "--subresource=status",
            "--type=merge",
            f"--patch={json.dumps({'status': status})}",
        )

    def make_set(self) -> None:
        """Makes the ConfigMap with the questions."""
        self._api.kubectl(
            "-n", self._namespace, "create", "configmap", "facts", "--from-literal=golden.jsonl={}"
        )


@pytest.fixture
def jobs(api: LocalCluster, namespace: str) -> Jobs:
    return Jobs(api, namespace)


def updated(make: Make) -> UpdatedPool:
    pool = make(replicas=9, worker={"device": "cpu", "env": [{"name": "A", "value": "1"}]}, update=UPDATE)
    pool.wait_workers(9)
    pool.change(worker={"device": "cpu", "env": [{"name": "A", "value": "2"}]})
    return pool


@pytest.mark.parametrize(
    ("fields", "end", "reason"),
    [({}, "Promoted", "NoWorse"), ({"green": {"hits": 3}}, "RolledBack", "WrongAnswers")],
)
def test_a_report_decides(make: Make, jobs: Jobs, fields: dict[str, Any], end: str, reason: str) -> None:
    jobs.make_set()
    pool = updated(make)
    green = pool.wait_step("Soak")["toRevision"]

    def made() -> list[str]:
        return [item["metadata"]["name"] for kind in ("jobs", "networkpolicies") for item in jobs.found(kind)]

    # Before there is a report: a bad one ends the update at once, and with it both.
    wanted = [f"{pool.name}-{green}-golden"] * 2
    pool.wait(made, lambda seen: seen == wanted, what="the Job and its policy", seconds=60)
    jobs.report(**fields)
    entry = pool.wait_over()

    assert (entry["end"], entry["reason"]) == (end, reason)
    for kind in ("jobs", "networkpolicies", "pods"):
        wait_for(lambda kind=kind: not jobs.found(kind), what=f"no {kind} of golden sets", seconds=30)


def test_a_set_that_is_not_there_is_told_and_asked_once_it_is(make: Make, jobs: Jobs) -> None:
    pool = updated(make)
    condition = pool.wait_condition("Degraded", "True", seconds=60)
    assert condition["reason"] == "GoldenConfigMapNotFound"
    assert jobs.found("jobs") == []

    jobs.make_set()
    jobs.report()

    assert pool.wait_over()["end"] == "Promoted"
