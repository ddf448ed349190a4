"""Simulated workers in real time: their counters tell the load that was asked of them."""

import re
import time
from collections.abc import Callable

import pytest

from zerolayer_dev.testing.shared_load import SharedLoad

BUSY, RECEIVED = "zero_layer_busy_slot_seconds_total", "zero_layer_requests_received_total"
WAITING = "zero_layer_waiting_request_seconds_total"


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass at once."""
    now = time.time()

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(time, "time", lambda: now)
    return wait


def told(load: SharedLoad, worker: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", load.told(worker), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_load_is_shared_and_all_of_it_is_counted(wait: Callable[[float], None]) -> None:
    load = SharedLoad(lambda _: 12.0, slots=16, service_s=2.0)
    load.join("a")
    load.join("b")
    wait(600)
    assert [told(load, worker, BUSY) / 600 for worker in "ab"] == pytest.approx([6, 6], rel=0.01)
    assert told(load, "a", "zero_layer_slots") == 16

    before = told(load, "b", RECEIVED), told(load, "b", BUSY)
    load.leave("a")
    load.offered = lambda _: 8.0
    wait(600)
    assert told(load, "b", RECEIVED) - before[0] == pytest.approx(600 * 8 / 2, rel=0.01)
    assert told(load, "b", BUSY) - before[1] == pytest.approx(600 * 8, rel=0.01)


def test_what_finds_no_slot_waits(wait: Callable[[float], None]) -> None:
    load = SharedLoad(lambda _: 12.0, slots=8, service_s=2.0)
    load.join("a")
    wait(100)
    assert told(load, "a", BUSY) / 100 == pytest.approx(8, rel=0.05)
    assert told(load, "a", WAITING) > 0

    load.offered = lambda _: 0.0
    wait(100)
    before = told(load, "a", BUSY), told(load, "a", WAITING)
    wait(100)
    assert (told(load, "a", BUSY), told(load, "a", WAITING)) == pytest.approx(before, abs=0.1)


def test_history_goes_on_to_what_is_told_now(wait: Callable[[float], None]) -> None:
    load = SharedLoad(lambda _: 4.0, labels={"pool": "p"})
    load.join("a")
    wait(10)
    pattern = re.compile(rf'^{BUSY}\{{pool="p",pod="a"\}} (\S+) (\d+)$')
    found = [match for line in load.replace_history(300) if (match := pattern.match(line))]
    steps = [(int(match[2]) / 1000, float(match[1])) for match in found]

    assert len(steps) == 19
    assert steps[0][0] == pytest.approx(time.time() - 285, abs=1)
    assert all(busy == pytest.approx(4 * (at - time.time() + 300), abs=1) for at, busy in steps)
    assert told(load, "a", BUSY) == pytest.approx(4 * 300, abs=1)
    assert f'{BUSY}{{pool="p",pod="a"}} {told(load, "a", BUSY)!r}' in list(load.to_prometheus())
