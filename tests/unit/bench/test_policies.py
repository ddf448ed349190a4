"""The policies that are compared."""

import numpy as np
import pytest

from zerolayer_bench.autoscaling.policies import (
    AdaptivePodAutoscaler,
    Clairvoyant,
    Concurrency,
    FixedWindow,
    KnativePodAutoscaler,
    Tuned,
)
from zerolayer_bench.autoscaling.queueing import Seen
from zerolayer_bench.autoscaling.simulation import Policy
from zerolayer_bench.autoscaling.traces import SLOTS_PER_POD


def seen(policy: Policy, load: float, queued: float = 0.0) -> Seen:
    """What workers count over one of a policy's periods at a load in slots, by requests of one second."""
    seconds = policy.period_s
    return Seen(
        seconds,
        round(load * seconds),
        load * seconds,
        queued * seconds,
        round(load * seconds),
        load * seconds,
    )


def followed(policy: Policy, loads: list[float], replicas: int = 10) -> list[int]:
    """The sizes a policy gives a pool whose pods start at once."""
    sizes = []
    for step, load in enumerate(loads):
        replicas = policy.resize((step + 1) * policy.period_s, seen(policy, load), replicas, replicas)
        sizes.append(replicas)
    return sizes


@pytest.mark.parametrize(
    "policy",
    [FixedWindow(300), Tuned(90), Concurrency(), KnativePodAutoscaler(), AdaptivePodAutoscaler()],
    ids=lambda policy: type(policy).__name__,
)
def test_a_flat_load_ends_near_the_target(policy: Policy) -> None:
    """0.7 x 8 slots are a pod's share; up to 10 % (APA: 20 %) more pods than needed are let be."""
    (*_, size) = followed(policy, [28.0] * (3600 // policy.period_s))

    assert 5 <= size <= 6


@pytest.mark.parametrize("window", [0, 60, 300])
def test_a_fixed_window_shrinks_when_nothing_within_it_asked_for_more(window) -> None:
    sizes = followed(FixedWindow(window), [56.0] * 8 + [28.0] * 40)
    # Means of 60 s: the last one that asks for more than five is the third after the step, 45 s later.
    assert (sizes.index(5) - 7) * 15 == max(60, 45 + window)


def test_ours_shrinks_sooner_than_a_fixed_window_after_a_small_step_of_a_flat_load() -> None:
    loads = [56.0] * 60 + [44.0] * 60
    ours, fixed = followed(Tuned(30), loads), followed(FixedWindow(300), loads)

    assert sum(ours[60:80]) < sum(fixed[60:80])
    assert ours[-1] == fixed[-1] == 8


def test_ours_keeps_what_the_last_burst_needed_where_a_short_window_does_not() -> None:
    loads = ([28.0] * 30 + [80.0] * 4) * 4
    after = len(loads) - 20
    ours, short = followed(Tuned(30), loads)[after], followed(FixedWindow(60), loads)[after]

    assert ours > short


def test_panic_doubles_at_once() -> None:
    sizes = followed(KnativePodAutoscaler(), [5.6 * 5] * 40 + [5.6 * 15] * 10, replicas=5)

    assert max(sizes[40:45]) >= 10


def test_who_knows_the_future_has_exactly_enough() -> None:
    offered = np.array([8.0] * 100 + [24.0] * 100)
    policy = Clairvoyant(offered, cold_start_s=30)

    assert policy.resize(15, seen(policy, 0), 10, 10) == 1
    assert policy.resize(75, seen(policy, 0), 10, 10) == 3
    assert policy.resize(150, seen(policy, 0), 10, 10) == 3


def test_waiting_requests_are_load_for_who_looks_at_concurrency_alone() -> None:
    busy = [SLOTS_PER_POD * 2.0] * 30
    by_concurrency, by_offered = Concurrency(), FixedWindow(300)
    sizes = [
        policy.resize(15 * step, seen(policy, load, queued=100.0), 3, 3)
        for policy in (by_concurrency, by_offered)
        for step, load in enumerate(busy)
    ]

    assert min(sizes[:30]) > 4
    assert max(sizes[30:]) <= 4
