"""However a cluster ends, nothing of it stays, and its name can be used again."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zerolayer_dev.cluster import host, launch
from zerolayer_dev.cluster.layout import Size, cgroup_name, interface_name
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.cluster.record import Process, Record
from zerolayer_dev.testing.waiting import wait_for

NAME = f"ending-{os.getpid()}"
UP_AND_WAIT = f"""
from zerolayer_dev.cluster import api
api.up({NAME!r}, "control-plane", tied=True)
print("up", flush=True)
input()
"""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    started = launch.up(NAME, Size.CONTROL_PLANE, tied=True)
    yield started
    launch.down(NAME)


def processes(cluster: Record) -> list[str]:
    """Command lines of whatever runs for a cluster, found by its folder."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if f"{cluster.state.root}/" in words:
            found.append(words)
    return found


def mounted(cluster: Record) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(cluster.state.root) in line]


def test_down_leaves_nothing(cluster: LocalCluster) -> None:
    record = cluster.record
    namespaces = {
        kind: Path(f"/proc/{record.init.pid}/ns/{kind}").readlink()
        for kind in ("net", "mnt", "pid", "uts", "ipc")
    }
    assert len(processes(record)) >= 5
    assert all(Path(f"/proc/self/ns/{kind}").readlink() != link for kind, link in namespaces.items())

    cluster.down()

    assert processes(record) == []
    assert mounted(record) == []
    assert interface_name(record.slot) not in host.interfaces()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{cgroup_name(NAME)}"))
    assert not record.state.root.exists()


@pytest.mark.parametrize("which", ["outer", "init"])
def test_a_killed_supervisor_takes_everything_along_and_the_name_is_free_again(
    cluster: LocalCluster, which: str
) -> None:
    record = cluster.record
    process: Process = getattr(record, which)
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: not processes(record), what="every process gone", seconds=10)
    wait_for(lambda: interface_name(record.slot) not in host.interfaces(), what="the link gone", seconds=10)

    again = launch.up(NAME, Size.CONTROL_PLANE, tied=True)

    assert again.record.init != record.init
    assert "default" in again.kubectl("get", "namespaces", "--output=name")


def test_a_tied_cluster_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", UP_AND_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        record = launch.find(NAME).record
        owner.kill()
    wait_for(lambda: not processes(record), what="every process gone", seconds=10)
    launch.down(NAME)
    assert not record.state.root.exists()


def test_clusters_beside_each_other_share_nothing(api: LocalCluster, cluster: LocalCluster) -> None:
    cluster.kubectl("create", "namespace", "only-here")

    assert "namespace/only-here" not in api.kubectl("get", "namespaces", "--output=name").split()
    assert api.addresses.node != cluster.addresses.node
