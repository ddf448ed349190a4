import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from zerolayer_dev.cluster.images import (
    ArchivedImage,
    archived_images,
    free_store,
    parse_image_list,
    replaced_images,
)


def archive(path: Path, members: dict[str, object]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            data = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def index(name: str | None) -> dict[str, object]:
    annotations = {} if name is None else {"org.opencontainers.image.ref.name": name}
    return {"manifests": [{"digest": "sha256:abc", "annotations": annotations}]}


def test_an_archive_tells_name_and_digest(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "x.tar", {"blobs/sha256/abc": {}, "index.json": index("zerolayer.dev/worker:dev")}
    )
    (image,) = archived_images(path)
    assert image == ArchivedImage("zerolayer.dev/worker:dev", "sha256:abc")
    assert image.repository == "zerolayer.dev/worker"


def test_the_archives_that_docker_saves_tell_it_too(tmp_path: Path) -> None:
    annotations = {
        "io.containerd.image.name": "zerolayer.dev/worker:dev",
        "org.opencontainers.image.ref.name": "dev",
    }
    content = {"manifests": [{"digest": "sha256:abc", "annotations": annotations}]}
    path = archive(tmp_path / "x.tar", {"index.json": content, "manifest.json": []})
    assert archived_images(path) == [ArchivedImage("zerolayer.dev/worker:dev", "sha256:abc")]


@pytest.mark.parametrize("name", [None, "dev", "worker:dev", "zerolayer.dev/worker"])
def test_images_without_a_full_name_are_refused(tmp_path: Path, name: str | None) -> None:
    path = archive(tmp_path / "x.tar", {"index.json": index(name)})
    with pytest.raises(ValueError, match="names its image"):
        archived_images(path)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.tar", {"manifest.json": []})
    with pytest.raises(ValueError, match="no OCI archive"):
        archived_images(path)


def test_the_nodes_list_of_images_is_read() -> None:
    listed = """\
REF                       TYPE                   DIGEST     SIZE     PLATFORMS   LABELS
zerolayer.dev/worker:dev  application/vnd.x+json sha256:abc 2.5 GiB  linux/amd64 io.cri=managed
sha256:def                application/vnd.x+json sha256:abc 2.5 GiB  linux/amd64 -
"""
    assert parse_image_list(listed) == {"zerolayer.dev/worker:dev": "sha256:abc", "sha256:def": "sha256:abc"}
    assert parse_image_list("REF TYPE DIGEST SIZE PLATFORMS LABELS\n") == {}


def test_images_are_kept_alive_by_their_name_alone() -> None:
    present = {
        "zerolayer.dev/worker:dev": "sha256:new",
        "sha256:config-of-new": "sha256:new",
        "sha256:config-of-old": "sha256:old",
    }
    assert replaced_images(present) == ["sha256:config-of-old"]
    assert replaced_images({}) == []


def test_nodes_beside_each_other_have_a_store_each_and_reuse_freed_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    with free_store() as (first, _):
        with free_store() as (second, _):
            assert first != second
        with free_store() as (third, _):
            assert third == second
    with free_store() as (again, _):
        assert again == first


def test_whoever_is_started_meanwhile_keeps_the_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    with free_store() as (store, _):
        pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ)
    try:
        with free_store() as (other, _):
            assert other != store
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    with free_store() as (again, _):
        assert again == store
