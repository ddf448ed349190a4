import tomllib
from pathlib import Path

import pytest

from zerolayer_dev.cluster import binaries, node
from zerolayer_dev.cluster.layout import Addresses, State

ADDRESSES = Addresses.of_slot(1)
STORE = Path("/cache/containerd/0")
PLUGINS = Path("/usr/lib/cni")


@pytest.fixture
def state(tmp_path: Path) -> State:
    written = State(tmp_path)
    written.config.mkdir()
    node.write_configuration(written, "x", ADDRESSES, STORE, PLUGINS)
    return written


def test_containerd_writes_to_its_store_and_to_the_nodes_own_run(state: State) -> None:
    config = tomllib.loads((state.config / "containerd.toml").read_text())
    assert config["version"] == 3
    assert config["root"] == str(STORE)
    assert config["state"].startswith("/run/")
    assert config["plugins"]["io.containerd.internal.v1.opt"]["path"].startswith("/run/")
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["cni"] == {"bin_dirs": [str(PLUGINS)], "conf_dir": str(state.config / "cni")}
    assert runtime["restrict_oom_score_adj"]
    assert not runtime["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"]


def test_the_sweep_opens_the_same_store_without_taking_up_containers(state: State) -> None:
    config = tomllib.loads((state.config / "containerd-sweep.toml").read_text())
    assert config["root"] == str(STORE)
    assert "io.containerd.grpc.v1.cri" in config["disabled_plugins"]


def test_pods_get_addresses_from_the_clusters_range() -> None:
    plugin, portmap = node.cni_config(ADDRESSES)["plugins"]
    assert plugin["ipam"]["ranges"] == [[{"subnet": str(ADDRESSES.pods)}]]
    assert portmap["type"] == "portmap"


def test_the_kubelet_runs_on_both_control_group_versions_below_a_group_of_the_clusters_own(
    state: State,
) -> None:
    config = node.kubelet_config(state, "x", ADDRESSES)
    assert config["failCgroupV1"] is False
    assert config["cgroupDriver"] == "cgroupfs"
    assert config["cgroupRoot"] == "/zerolayer-x"


def test_a_full_disk_neither_evicts_pods_nor_removes_images(state: State) -> None:
    config = node.kubelet_config(state, "x", ADDRESSES)
    assert set(config["evictionHard"].values()) == {"0%"}
    assert config["imageGCHighThresholdPercent"] == 100


def test_everything_laid_over_the_hosts_folders_exists(state: State) -> None:
    targets = {mount.target for mount in node.mounts(state)}
    assert {str(path) for path in node.hidden_folders()} <= targets
    for mount in node.mounts(state):
        if mount.source is not None:
            assert Path(mount.source).exists()
            assert Path(mount.source).is_dir() == Path(mount.target).is_dir()


def test_the_kubelet_starts_after_leftovers_are_swept(state: State) -> None:
    programs = {name: Path("/bin") / name for name in binaries.NODE}
    made = {
        component.name: component
        for component in node.components(state, "x", ADDRESSES, programs, ("/bin/sweep",))
    }
    assert made["containerd"].needs == ("containerd-sweep",)
    assert "containerd" in made["kubelet"].needs
    assert made["containerd-sweep"].command == ("/bin/sweep",)
