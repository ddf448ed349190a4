import subprocess
import sys

from zerolayer_dev.testing.traces import left, traces
from zerolayer_dev.testing.waiting import wait_for


def test_a_process_is_seen_while_it_runs_and_not_after() -> None:
    marker = "zerolayer-traces-marker"
    before = traces(marker)
    with subprocess.Popen([sys.executable, "-c", "input()", marker], stdin=subprocess.PIPE) as process:
        seen = wait_for(lambda: left(before, traces(marker)).get("processes"), what="the process", seconds=10)
        process.communicate(b"\n")

    assert seen is not None
    assert marker in next(iter(seen))
    assert "processes" not in left(before, traces(marker))


def test_what_was_there_before_is_not_left() -> None:
    assert left({"mounts": {"a"}}, {"mounts": {"a"}}) == {}
    assert left({"mounts": {"a"}}, {"mounts": {"a", "b"}}) == {"mounts": {"b"}}
