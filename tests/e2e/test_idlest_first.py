"""Whoever has least to do goes first when a pool shrinks."""

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import DEMO_MODEL, Pool
from zerolayer_dev.testing.release import Release
from zerolayer_dev.testing.waiting import wait_for

COST = "controller.kubernetes.io/pod-deletion-cost"
LOOKS = "zerolayer_operator_look_seconds_count"
WORKERS, BUSY, MOST_STREAMS = 3, 2, 30
PATIENT = {"drainSeconds": 400, "terminationGracePeriodSeconds": 430}
LIMITED = {
    "device": "cpu",
    "maxModelLen": 1024,
    "resources": {
        "requests": {"cpu": "100m", "memory": "700Mi"},
        "limits": {"cpu": "500m", "memory": "2Gi"},
    },
}
"""Busy for minutes, they leave the rest of the node something of two cores."""

STORY = "tell a very long story of a river, of at least two thousand words"
"""The model's most probable answer goes on and on."""


def autoscaling(fewest: int) -> dict[str, Any]:
    """Whatever they have to do fits on one worker, so that the fewest allowed are what the pool gets."""
    metric = {"type": "CPU", "target": 10_000}
    down = {"mode": "Fixed", "fixedWindow": "15s"}
    return {"minReplicas": fewest, "maxReplicas": WORKERS, "metric": metric, "scaleDown": down}


@dataclass(frozen=True)
class Told:
    """What a worker says of itself."""

    running: int
    received: int


@dataclass(frozen=True)
class Sample:
    """The workers that were there at an instant, by name."""

    at: float
    told: Mapping[str, Told]
    costs: Mapping[str, str | None]

    @property
    def running(self) -> dict[str, int]:
        return {name: told.running for name, told in self.told.items()}


def ask(pod: Mapping[str, Any]) -> Told:
    text = httpx.get(f"http://{pod['status']['podIP']}:8081/metrics", trust_env=False, timeout=30).text
    values = dict(re.findall(r"^zero_layer_requests_(running|received_total) (\S+)$", text, re.MULTILINE))
    return Told(*(int(float(values[name])) for name in ("running", "received_total")))


def look(pool: Pool) -> Sample:
    pods = {pod["metadata"]["name"]: pod for pod in pool.pods()}
    costs = {name: pod["metadata"].get("annotations", {}).get(COST) for name, pod in pods.items()}
    return Sample(time.monotonic(), {name: ask(pod) for name, pod in pods.items()}, costs)


class Streams:
    """Clients that ask for one long stream after the other, each on a connection that it keeps."""

    def __init__(self, pool: Pool, stack: contextlib.ExitStack) -> None:
        self._pool = pool
        self._stack = stack
        self.by_worker: dict[str, list[Load]] = {name: [] for name in look(pool).told}

    @property
    def loads(self) -> list[Load]:
        return [load for loads in self.by_worker.values() for load in loads]

    def start(self) -> None:
        """Starts one and notes which worker the Service has led it to."""
        before = look(self._pool).told
        client = Client(streams=True, keeps_alive=True)
        load = Load(
            self._pool.url,
            model=DEMO_MODEL,
            clients=[client],
            max_tokens=400,
            prompt=STORY,
            intent="deterministic",
        )
        self._stack.enter_context(load)

        def led_to() -> list[str]:
            now = look(self._pool).told
            return [name for name, told in now.items() if told.received > before[name].received]

        worker, *_ = wait_for(led_to, what="a stream to begin", seconds=60)
        self.by_worker[worker].append(load)

    def stop(self) -> None:
        for load in self.loads:
            load.stop()


def shrink(pool: Pool, size: int) -> tuple[set[str], Sample]:
    """Lets the pool shrink; returns who went, and the last sample before that."""
    samples = [look(pool)]
    pool.change(autoscaling=autoscaling(size))

    def living() -> int:
        samples.append(look(pool))
        return len(samples[-1].told)

    wait_for(living, until=lambda count: count == size, what=f"{size} workers", seconds=120)
    last = next(sample for sample in reversed(samples) if len(sample.told) > size)
    return last.told.keys() - samples[-1].told.keys(), last


def shrunk(pool: Pool, size: int, release: Release) -> dict[str, Any]:
    """Shrinks the pool by a worker, waits until that has gone, and returns the figures.

    Before that, the operator has asked the workers again, as it does every 15 s: what ended since it asked
    last it can't know. It looks at reconciles as well, without having asked.
    """
    before = release.metric(LOOKS)
    pool.wait(
        lambda: release.metric(LOOKS),
        lambda count: count >= before + 4,
        what="the operator's looks",
        seconds=90,
    )
    gone, sample = shrink(pool, size)
    (victim,) = gone
    assert sample.running[victim] <= min(sample.running.values()) + 1
    pool.wait(pool.all_pods, lambda pods: len(pods) == size, what="the drain", seconds=430)
    return {
        "workers": f"{len(sample.told)} to {size}",
        "running": sorted(sample.running.values()),
        "running_where_it_went": sample.running[victim],
        "deletion_cost": sample.costs[victim],
    }


@pytest.mark.long
@pytest.mark.promise("idlest-first")
def test_the_idlest_worker_goes_first_and_no_stream_is_cut(pool, release: Release, figures) -> None:
    """Scaled down under long streams, a pool cuts none; who goes runs at most one more than the idlest."""
    elastic = pool("idlest", worker=LIMITED, autoscaling=autoscaling(WORKERS), **PATIENT)
    elastic.wait_ready(WORKERS, seconds=400)
    oldest = min(elastic.pods(), key=lambda pod: pod["status"]["startTime"])["metadata"]["name"]
    with contextlib.ExitStack() as stack:
        streams = Streams(elastic, stack)
        others = streams.by_worker.keys() - {oldest}
        while min(len(streams.by_worker[name]) for name in others) < BUSY:
            assert len(streams.loads) < MOST_STREAMS
            streams.start()
        for load in streams.by_worker[oldest]:
            load.stop()
        elastic.wait(
            lambda: look(elastic).running,
            lambda running: running[oldest] + BUSY <= min(running[name] for name in others),
            what="one idle worker",
            seconds=300,
        )
        for size in (2, 1):
            figures(**shrunk(elastic, size, release))
        streams.stop()
    attempts = [attempt for load in streams.loads for attempt in load.attempts]
    failures = [failure for load in streams.loads for failure in load.failures]
    figures(
        streams=len(attempts),
        cut=len(failures),
        longest_s=round(max(attempt.ended - attempt.started for attempt in attempts)),
        tokens=sum(attempt.tokens for attempt in attempts),
    )

    assert failures == []
