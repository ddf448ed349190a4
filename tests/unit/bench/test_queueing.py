"""The compiled queue does what a plain one does."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_bench.autoscaling.queueing import Queue
from zerolayer_bench.autoscaling.traces import Workload

SECONDS = 40
requests = st.lists(st.tuples(st.floats(0, SECONDS - 1), st.floats(0.01, 20)), min_size=1, max_size=40)


def plain_waits(jobs: list[tuple[float, float]], slots: list[int], period: int) -> list[float]:
    """First come, first served, by however many slots there are in each period; nobody is cut off."""
    running: list[float] = []
    waits = []
    free_at = 0.0
    for arrival, service in jobs:
        now = max(arrival, free_at)
        while True:
            running = [end for end in running if end > now]
            if now >= len(slots) * period:
                now = math.inf
                break
            step = int(now // period)
            if len(running) < slots[step]:
                break
            now = min([(step + 1.0) * period, *running])
        free_at = now
        waits.append(now - arrival)
        if now < math.inf:
            running.append(now + service)
    return waits


@given(requests, st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_waits_are_those_of_a_plain_queue(jobs, slots) -> None:
    jobs = sorted(jobs)
    arrivals, services = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    queue = Queue(Workload("w", arrivals, services, SECONDS))
    seen = [queue.advance(5, count) for count in slots]

    expected = plain_waits(jobs, slots, 5)
    assert np.allclose(queue.waits, expected)
    assert sum(part.arrivals for part in seen) == len(jobs)
    started = [job for job, wait in zip(jobs, expected, strict=True) if wait < math.inf]
    busy = sum(
        min(service, SECONDS - arrival - wait)
        for (arrival, service), wait in zip(
            started, (wait for wait in expected if wait < math.inf), strict=True
        )
    )
    assert math.isclose(sum(part.busy_s for part in seen), busy, abs_tol=1e-6)
    queued = sum(min(wait, SECONDS - arrival) for (arrival, _), wait in zip(jobs, expected, strict=True))
    assert math.isclose(sum(part.queued_s for part in seen), queued, abs_tol=1e-6)


def test_what_ended_is_counted_when_it_ended() -> None:
    queue = Queue(Workload("w", np.array([0.0, 0.0]), np.array([2.5, 7.0]), 10))
    first, second = queue.advance(5, 2), queue.advance(5, 2)

    assert (first.finished, first.service_s) == (1, 2.5)
    assert (second.finished, second.service_s) == (1, 7.0)
