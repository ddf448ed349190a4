import os
import sys
from pathlib import Path

import pytest

from zerolayer_dev.cluster import host
from zerolayer_dev.cluster.commands import CommandError
from zerolayer_dev.cluster.layout import Addresses, State
from zerolayer_dev.testing.waiting import wait_for

HYBRID = """\
29 23 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
30 29 0:27 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw
33 29 0:30 / /sys/fs/cgroup/cpu rw,relatime shared:15 - cgroup cgroup rw,cpu
34 29 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
35 23 0:32 / /proc rw - proc proc rw
"""
UNIFIED = "30 29 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def test_control_group_hierarchies_of_both_versions_are_found() -> None:
    found = [str(path) for path in host.hierarchies(HYBRID)]
    assert found == ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"]
    assert host.hierarchies(UNIFIED) == [Path("/sys/fs/cgroup")]


def test_version_2_controllers_are_handed_down_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    host.delegate_controllers(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"


def test_version_1_groups_have_nothing_to_hand_down(tmp_path: Path) -> None:
    host.delegate_controllers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_host_reaches_services_and_pods_by_way_of_the_node() -> None:
    addresses = Addresses.of_slot(0)
    create, *_, services, pods = host.link_commands("zerolayer0", addresses, 42)
    assert create[-2:] == ["netns", "42"]
    for route, network in ((services, addresses.services), (pods, addresses.pods)):
        assert route == ["ip", "route", "add", str(network), "via", str(addresses.node), "dev", "zerolayer0"]


def test_namespaces_end_with_the_outer_process() -> None:
    assert {"--net", "--pid", "--mount", "--uts", "--ipc", "--kill-child"} <= set(host.UNSHARE)


def test_a_link_that_the_kernel_removed_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([{"lo", "zerolayer5"}, {"lo"}])
    monkeypatch.setattr(host, "interfaces", lambda: next(seen))
    monkeypatch.setattr(host, "output", refuse)
    host.unlink(5)


def test_a_link_that_stays_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "interfaces", lambda: {"lo", "zerolayer5"})
    monkeypatch.setattr(host, "output", refuse)
    with pytest.raises(CommandError, match="ip link delete zerolayer5"):
        host.unlink(5)


def refuse(command: list[str]) -> str:
    raise CommandError(command, 1, "no such device")


def test_a_cluster_keeps_nothing_of_its_starters_open_but_what_it_is_handed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Its only child is the one that stays: any other could be taken for the cluster's first process.
    shown = (
        "for f in os.listdir('/proc/self/fd'): print(f, os.path.realpath(f'/proc/self/fd/{f}'), flush=True)"
    )
    program = f"import os, subprocess\n{shown}\nsubprocess.run(['sleep', '1000'])"
    monkeypatch.setattr(host, "UNSHARE", (sys.executable, "-c", program, "x"))
    state = State(tmp_path)
    state.logs.mkdir()
    handed, own = os.memfd_create("handed", 0), os.memfd_create("own", 0)
    outer, init = host.start(state, [handed])
    os.close(handed)
    os.close(own)
    try:
        listed = wait_for((state.logs / "supervisor.log").read_text, what="the list", seconds=10)
        assert "memfd:handed" in listed
        assert "memfd:own" not in listed
    finally:
        init.end()
        outer.end()
