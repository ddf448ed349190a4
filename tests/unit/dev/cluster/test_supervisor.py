import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.cluster.plan import Component, Plan, Probe
from zerolayer_dev.cluster.supervisor import ComponentDiedError, Running, Supervisor, log_tail
from zerolayer_dev.testing.waiting import wait_for

TASK = Component("task", ("/bin/true",), Probe("exit"))
SERVICE = Component("service", ("/bin/sleep", "1000"), needs=("task",))


def test_a_component_waits_for_what_it_needs() -> None:
    item = Running(SERVICE)
    assert not item.wants_start([], now=0.0)
    assert item.wants_start(["task"], now=0.0)


def test_an_ended_component_is_started_again_after_a_growing_pause() -> None:
    item = Running(SERVICE)
    pauses: list[float] = []
    for _ in range(4):
        item.pid, item.started = 1, 100.0
        item.ended(1, now=101.0)
        pauses.append(item.start_at - 101.0)
        assert not item.wants_start(["task"], now=101.0)
        assert item.wants_start(["task"], now=item.start_at)
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == 4


def test_a_component_that_keeps_ending_is_given_up() -> None:
    item = Running(SERVICE)
    for _ in range(5):
        item.ended(3, now=1.0)
    with pytest.raises(ComponentDiedError, match="service ended 6 times in a row, last with status 3"):
        item.ended(3, now=1.0)


# Whole seconds: of others the difference of two sums may fall short of 30.
@given(st.lists(st.integers(min_value=30, max_value=1000), max_size=50))
def test_rare_ends_never_add_up(lives: list[int]) -> None:
    item, now = Running(SERVICE), 0.0
    for life in lives:
        item.started, now = now, now + life
        item.ended(1, now)
    assert item.failures <= 1


def test_a_stopped_component_stays_away_without_counting_as_failed() -> None:
    item = Running(SERVICE, pid=1, ready=True, stopped=True)
    item.ended(-9, now=5.0)
    assert (item.failures, item.ready, item.pid) == (0, False, None)
    assert not item.wants_start(["task"], now=1e9)


def test_a_task_is_ready_once_it_ended_well_and_is_not_repeated() -> None:
    item = Running(TASK)
    item.ended(0, now=1.0)
    assert item.ready
    assert not item.wants_start([], now=1e9)


def test_a_failed_task_is_tried_again() -> None:
    item = Running(TASK)
    item.ended(1, now=1.0)
    assert not item.ready
    assert item.wants_start([], now=1e9)


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    plan = Plan(
        "x", "", "", os.environ["PATH"], str(tmp_path), str(tmp_path / "control.sock"), (SERVICE, TASK)
    )
    return Supervisor(plan)


def stepped(supervisor: Supervisor, name: str) -> Running:
    supervisor.step()
    return supervisor.running[name]


def test_components_start_in_the_order_of_their_needs_and_can_be_stopped(supervisor: Supervisor) -> None:
    wait_for(lambda: stepped(supervisor, "service").ready, what="the service", seconds=10, interval=0.01)
    assert supervisor.running["task"].done

    request = {"do": "stop", "component": "service", "signal": signal.SIGKILL}
    assert supervisor.handle(request) == {}
    wait_for(lambda: stepped(supervisor, "service").pid is None, what="its end", seconds=10, interval=0.01)
    assert supervisor.handle({"do": "status"})["service"] == {"pid": None, "ready": False, "failures": 0}
    assert supervisor.handle(request) == {"error": "service does not run"}

    supervisor.handle({"do": "start", "component": "service"})
    pid = stepped(supervisor, "service").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_an_unknown_component_is_an_error_that_names_the_known_ones(supervisor: Supervisor) -> None:
    answer = supervisor.handle({"do": "start", "component": "nothing"})
    assert answer == {"error": "no component nothing; there are service, task"}


def test_what_a_component_says_lands_in_its_log(tmp_path: Path) -> None:
    speaker = Component("speaker", (sys.executable, "-c", "print('hello')"), Probe("exit"))
    plan = Plan("x", "", "", os.environ["PATH"], str(tmp_path), "", (speaker,))
    item = Supervisor(plan)
    wait_for(lambda: stepped(item, "speaker").done, what="its end", seconds=20, interval=0.01)
    assert (tmp_path / "speaker.log").read_text() == "hello\n"


def test_the_end_of_a_log_is_shown_indented(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("\n".join(f"line {number}" for number in range(100)))
    assert log_tail(log).splitlines()[-1] == "    line 99"
    assert len(log_tail(log).splitlines()) == 16
    assert log_tail(tmp_path / "none.log") == ""
