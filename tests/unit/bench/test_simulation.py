"""Pods that start, serve and go, and what a policy is told and charged for."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from zerolayer_bench.autoscaling.queueing import Seen
from zerolayer_bench.autoscaling.simulation import FIRST_REPLICAS, Pods, simulate
from zerolayer_bench.autoscaling.traces import SLOTS_PER_POD, Workload, offered_load


@dataclass
class Scripted:
    """Wants what it is told to want, and keeps what it was shown."""

    sizes: list[int]
    period_s: int = 15
    shown: list[tuple[int, Seen, int, int]] = field(default_factory=list)

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        self.shown.append((now, seen, replicas, ready))
        return self.sizes[len(self.shown) - 1]


def flat(busy: int, seconds: int) -> Workload:
    """So many slots busy all the time, by requests of ten seconds."""
    starts = np.repeat(np.arange(0, seconds, 10.0), busy)
    return Workload("flat", starts, np.full(len(starts), 10.0), seconds)


def test_a_pod_serves_a_cold_start_after_it_was_made_and_is_paid_from_the_start() -> None:
    policy = Scripted([12, 12, 12, 12])
    outcome = simulate(flat(1, 60), offered_load(flat(1, 60)), policy, 30)

    assert [(now, replicas, ready) for now, _, replicas, ready in policy.shown] == [
        (15, FIRST_REPLICAS, FIRST_REPLICAS),
        (30, 12, 10),
        (45, 12, 10),
        (60, 12, 12),
    ]
    assert outcome.replica_hours == pytest.approx((10 + 12 * 3) * 15 / 3600)


def test_overload_is_the_time_with_more_offered_than_ready_pods_have_slots() -> None:
    workload = flat(SLOTS_PER_POD * 2, 60)
    outcome = simulate(workload, offered_load(workload), Scripted([1, 1, 2, 2]), 15)

    # Two pods are needed: there is one from second 15 on, and the other again at 60.
    assert outcome.overload_share == pytest.approx(45 / 60)
    assert outcome.late_share > 0


def test_those_that_start_go_first() -> None:
    pods = Pods(cold_start_s=60, ready=3)
    pods.resize(0, 8)
    pods.resize(15, 4)

    assert (pods.ready, pods.replicas) == (3, 4)
    pods.wake(60)
    assert (pods.ready, pods.replicas) == (4, 4)
    pods.resize(75, 1)
    assert (pods.ready, pods.replicas) == (1, 1)


@pytest.mark.parametrize(("grows_at", "regrets"), [(60, 1), (61, 0)])
def test_a_regret_is_to_grow_within_a_cold_start_after_shrinking(grows_at, regrets) -> None:
    pods = Pods(cold_start_s=60, ready=3)
    pods.resize(0, 2)
    pods.resize(grows_at, 3)

    assert pods.regrets == regrets
