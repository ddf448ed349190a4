import multiprocessing
import subprocess
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.binaries import GO_BINARIES, GoBinary, module_version, path_of

GO_MOD = """
module x

require k8s.io/api v0.36.3

require (
	k8s.io/kubernetes v1.36.3
	k8s.io/kubernetes-extra v9.9.9 // indirect
	go.etcd.io/etcd/server/v3 v3.7.3 // indirect
)

replace k8s.io/client-go => k8s.io/client-go v0.1.0
"""


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("k8s.io/kubernetes", "v1.36.3"),
        ("k8s.io/api", "v0.36.3"),
        ("go.etcd.io/etcd/server/v3", "v3.7.3"),
    ],
)
def test_versions_come_from_go_mod(module: str, version: str) -> None:
    assert module_version(GO_MOD, module) == version


@pytest.mark.parametrize("module", ["k8s.io", "k8s.io/client-go", "server/v3"])
def test_modules_that_are_not_required_have_no_version(module: str) -> None:
    with pytest.raises(LookupError, match=module):
        module_version(GO_MOD, module)


def test_every_binary_has_a_version_and_a_place_of_its_own() -> None:
    paths = {name: path_of(name) for name in (*GO_BINARIES, *binaries.CLIENTS)}
    assert len(set(paths.values())) == len(paths)
    for name, path in paths.items():
        assert path.name == name
        assert path.parent.parent == binaries.cache_dir() / "bin"


def test_kubernetes_binaries_know_their_version() -> None:
    given = GO_BINARIES["kube-apiserver"].flags
    flags = given[given.index("-ldflags") + 1]
    version = GO_BINARIES["kube-apiserver"].version
    assert f"-X k8s.io/component-base/version.gitVersion={version}" in flags
    assert f"version.gitMajor={version[1:].split('.')[0]} " in flags
    assert f"version.gitMinor={version.split('.')[1]}" in flags


def test_tags_reach_the_build() -> None:
    flags = GO_BINARIES["prometheus"].flags
    assert flags[flags.index("-tags") + 1] == "remove_all_sd,enable_kubernetes_sd"


@pytest.fixture
def fake_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Replaces compiling by writing a file and a line of a log; returns the log."""
    log = tmp_path / "builds"
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "require", lambda *_: None)

    def run(command: list[str], **_: Any) -> None:
        output = command.index("-o") + 1
        packages = command[output + 1 :]
        with log.open("a") as file:
            file.write(" ".join(packages) + "\n")
        for package in packages:
            # As Go names what it puts into a folder.
            (Path(command[output]) / package.removesuffix("/v3").rpartition("/")[2]).write_text("program")

    monkeypatch.setattr(binaries.subprocess, "run", run)
    return log


def test_a_binary_is_built_once(fake_build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = binaries.ensure(["etcd"])
    second = binaries.ensure(["etcd"])

    assert first == second == {"etcd": path_of("etcd")}
    assert fake_build.read_text().split() == ["go.etcd.io/etcd/server/v3"]
    assert "building etcd v" in capsys.readouterr().err


def test_programs_with_the_same_flags_are_built_together(fake_build: Path) -> None:
    asked = ["etcd", *binaries.CONTROL_PLANE, "kubelet", "coredns", "metrics-server", "prometheus"]

    paths = binaries.ensure(asked)

    built = [set(line.split()) for line in fake_build.read_text().splitlines()]
    kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"]
    together = [["etcd"], kubernetes, ["coredns", "metrics-server"], ["prometheus"]]
    assert built == [{GO_BINARIES[name].package for name in names} for names in together]
    assert all(path.read_text() == "program" for path in paths.values())


def test_two_processes_do_not_build_the_same_twice(fake_build: Path) -> None:
    fork = multiprocessing.get_context("fork")
    builders = [fork.Process(target=binaries.ensure, args=(["etcd", "pause"],)) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(30)
    assert sorted(fake_build.read_text().split()) == sorted(
        GO_BINARIES[name].package for name in ("etcd", "pause")
    )


def test_a_failed_build_leaves_no_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    monkeypatch.setattr(binaries, "require", lambda *_: None)

    def run(command: list[str], **_: Any) -> None:
        (Path(command[command.index("-o") + 1]) / "server").write_text("half a pro")
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(binaries.subprocess, "run", run)
    with pytest.raises(subprocess.CalledProcessError):
        binaries.ensure(["etcd"])
    assert not path_of("etcd").exists()


def test_a_go_binary_is_described_by_one_go_mod() -> None:
    assert all((binary.source / "go.mod").exists() for binary in GO_BINARIES.values())
    assert isinstance(GO_BINARIES["pause"], GoBinary)
