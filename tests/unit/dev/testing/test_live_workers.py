"""Simulated workers in real time: their counters tell the load that was asked of them."""

import random
import re
import time

import pytest

from zerolayer_dev.testing.live_workers import LivePool, LiveWorker


def told(metrics: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", metrics, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_worker_runs_as_many_at_once_as_it_has_slots() -> None:
    worker = LiveWorker(slots=2)
    for number in range(3):
        worker.take(str(number), 10.0, 4.0)

    assert worker.burden(10.0) == (2, 14.0)
    counts = worker.counts(16.0)
    assert (counts.received, counts.served) == (3, 2)
    assert counts.busy_slot_seconds == pytest.approx(4 + 4 + 2)
    assert counts.waiting_request_seconds == pytest.approx(4)


def test_load_is_shared_and_all_of_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    pool = LivePool(lambda _: 12.0, 16, 2.0, random.Random(1))
    pool.add("a")
    pool.add("b")
    now[0] += 600
    busy = [told(pool.metrics(address), "zero_layer_busy_slot_seconds_total") / 600 for address in "ab"]

    assert sum(busy) == pytest.approx(12, rel=0.1)
    assert busy[0] == pytest.approx(busy[1], rel=0.1)

    before = told(pool.metrics("b"), "zero_layer_requests_received_total")
    pool.remove("a")
    pool.offered = lambda _: 8.0
    now[0] += 600
    received = told(pool.metrics("b"), "zero_layer_requests_received_total") - before
    assert received == pytest.approx(600 * 8 / 2, rel=0.1)
