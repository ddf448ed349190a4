"""Files out of a program's Go module."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.cluster import binaries, module_files
from zerolayer_dev.cluster.binaries import GO_BINARIES


def test_folders_of_other_modules_lie_apart_by_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "sigs.k8s.io/gateway-api"
    version = binaries.module_version((GO_BINARIES["traefik"].source / "go.mod").read_text(), module)
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    place = binaries.path_of("traefik").parent / f"gateway-api-{version}" / "config"
    place.mkdir(parents=True)

    assert module_files.ensure_folder("traefik", "config", module) == place


def test_folder_is_copied_once_and_may_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "module"
    (module / "config" / "rbac").mkdir(parents=True)
    (module / "config" / "rbac" / "role.yaml").write_text("role")
    (module / "other").write_text("not asked for")
    for path in (module / "config" / "rbac" / "role.yaml", module / "config" / "rbac", module / "config"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=json.dumps({"Dir": str(module)}).encode())

    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module_files, "require", lambda *_: None)
    monkeypatch.setattr(module_files.subprocess, "run", run)
    first = module_files.ensure_folder("keda-operator", "config")
    second = module_files.ensure_folder("keda-operator", "config")

    assert first == second == binaries.path_of("keda-operator").parent / "config"
    assert asked == [["go", "mod", "download", "-json", "github.com/kedacore/keda/v2"]]
    assert {path.relative_to(first) for path in first.rglob("*") if path.is_file()} == {
        Path("rbac/role.yaml")
    }
    assert (first / "rbac").stat().st_mode & 0o200
    assert list((tmp_path / "cache" / "bin").glob(".unfinished*")) == []
