import os
import subprocess
from pathlib import Path

import pytest

from zerolayer_dev.cluster.layout import SLOTS, Addresses, Size, State
from zerolayer_dev.cluster.record import Process, Record, child_of, folders, free_slot


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))


def test_this_process_lives() -> None:
    assert Process.of(os.getpid()).alive


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    here = Process.of(os.getpid())
    assert not Process(here.pid, here.started - 1).alive


def test_ending_waits_until_the_process_is_gone() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        process = Process.of(child.pid)
        process.end()
        assert not process.alive


def test_ending_spares_a_later_process_of_the_same_number() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        now = Process.of(child.pid)
        Process(now.pid, now.started - 1).end()
        assert now.alive
        child.kill()


def test_ending_what_is_gone_does_nothing() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    Process(child.pid, 1).end()


def test_no_process_has_no_record() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    with pytest.raises(ProcessLookupError):
        Process.of(child.pid)


def test_the_child_of_a_process_is_found() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 1000; true"]) as parent:
        child = child_of(parent.pid)
        assert Path(f"/proc/{child}/stat").read_text().split()[3] == str(parent.pid)
        os.kill(child, 9)


def test_a_record_survives_being_written() -> None:
    here = Process.of(os.getpid())
    record = Record("x", Size.NODE, 4, here, here, "/store")
    state = State.of("x")
    assert Record.read(state) is None
    state.root.mkdir()
    record.write()
    assert Record.read(state) == record
    assert record.alive
    assert record.addresses == Addresses.of_slot(4)
    assert folders() == [state]


def test_the_lowest_free_slot_is_taken() -> None:
    assert free_slot([]) == 0
    assert free_slot([0, 1, 3]) == 2
    with pytest.raises(LookupError, match="in use"):
        free_slot(range(SLOTS))
