import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.cluster.images import archived_images
from zerolayer_dev.images.archive import LayerPool, collect, copy_missing, prepare_layout

REFERENCE = "zerolayer.dev/worker:dev"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def push(layout: Path, layers: dict[str, bytes]) -> None:
    """Push as a builder does: layers whose blob seems to be there are taken as they are."""
    blobs = layout / "blobs/sha256"
    descriptors: list[dict[str, Any]] = []
    for diff_id, content in layers.items():
        if (blobs / diff_id).exists():
            descriptors.append({"mediaType": "tar", "digest": f"sha256:{diff_id}", "size": 0})
        else:
            compressed = b"compressed " + content
            (blobs / sha256(compressed)).write_bytes(compressed)
            digest = f"sha256:{sha256(compressed)}"
            descriptors.append({"mediaType": "tar+zstd", "digest": digest, "size": len(compressed)})
    config = json.dumps({"rootfs": {"diff_ids": list(layers)}}).encode()
    (blobs / sha256(config)).write_bytes(config)
    manifest = json.dumps(
        {"config": {"digest": f"sha256:{sha256(config)}", "size": len(config)}, "layers": descriptors}
    ).encode()
    (blobs / sha256(manifest)).write_bytes(manifest)
    index = {"manifests": [{"digest": f"sha256:{sha256(manifest)}", "size": len(manifest)}]}
    (layout / "index.json").write_text(json.dumps(index))


def save(tmp_path: Path, name: str, layers: dict[str, bytes]) -> tuple[Path, set[str]]:
    """Save an image; returns the archive and the layers that had to be compressed."""
    layout, pool = tmp_path / f"layout-{name}", LayerPool(tmp_path / "pool")
    prepare_layout(layout, pool, list(layers))
    skipped = {path.name for path in (layout / "blobs/sha256").iterdir()}
    push(layout, layers)
    collect(layout, pool, list(layers), REFERENCE, tmp_path / name)
    return tmp_path / name, set(layers) - skipped


def members(archive: Path | io.BytesIO) -> dict[str, bytes]:
    with tarfile.open(archive) if isinstance(archive, Path) else tarfile.open(fileobj=archive) as tar:
        return {entry.name: file.read() for entry in tar if (file := tar.extractfile(entry))}


def assert_whole(archive: Path, layers: dict[str, bytes]) -> None:
    content = members(archive)
    (image,) = archived_images(archive)
    assert image.name == REFERENCE
    for name, blob in content.items():
        assert not name.startswith("blobs/") or name == f"blobs/sha256/{sha256(blob)}"
    manifest = json.loads(content["blobs/sha256/" + image.digest.removeprefix("sha256:")])
    blobs = [
        content["blobs/sha256/" + layer["digest"].removeprefix("sha256:")] for layer in manifest["layers"]
    ]
    assert blobs == [b"compressed " + layer for layer in layers.values()]
    assert [layer["size"] for layer in manifest["layers"]] == [len(blob) for blob in blobs]
    assert {layer["mediaType"] for layer in manifest["layers"]} == {"tar+zstd"}


def layered(*contents: bytes) -> dict[str, bytes]:
    return {sha256(content): content for content in contents}


def test_a_layer_that_was_saved_before_is_neither_compressed_nor_read_again(tmp_path: Path) -> None:
    first, second = layered(b"torch", b"code 1"), layered(b"torch", b"code 2")

    archive, compressed = save(tmp_path, "1.tar", first)
    assert compressed == set(first)
    assert_whole(archive, first)

    archive, compressed = save(tmp_path, "2.tar", second)
    assert compressed == {sha256(b"code 2")}
    assert_whole(archive, second)


def test_layers_that_nothing_used_for_two_weeks_are_forgotten(tmp_path: Path) -> None:
    save(tmp_path, "1.tar", layered(b"torch", b"code"))
    pool = LayerPool(tmp_path / "pool")
    now = pool.blob(sha256(b"torch")).stat().st_mtime

    pool.prune([sha256(b"torch")], now + 13 * 86_400)
    pool.prune([], now + 15 * 86_400)

    assert pool.descriptor(sha256(b"torch")) is not None
    assert pool.descriptor(sha256(b"code")) is None
    assert not pool.blob(sha256(b"code")).exists()


def test_a_copy_leaves_out_the_layers_that_are_there_and_nothing_else(tmp_path: Path) -> None:
    layers = layered(b"torch", b"code")
    archive, _ = save(tmp_path, "1.tar", layers)
    present = tmp_path / "present"
    present.mkdir()
    blob = b"compressed torch"
    (present / sha256(blob)).write_bytes(blob)
    out = io.BytesIO()

    left_out = copy_missing(archive, present, out)

    assert left_out == len(blob)
    whole = members(archive)
    expected = {name: content for name, content in whole.items() if content != blob}
    assert members(io.BytesIO(out.getvalue())) == expected
    assert len(expected) == len(whole) - 1


@pytest.mark.parametrize("content", [b"", b"compressed torc"])
def test_a_layer_of_which_only_a_part_is_there_is_copied(tmp_path: Path, content: bytes) -> None:
    archive, _ = save(tmp_path, "1.tar", layered(b"torch"))
    present = tmp_path / "present"
    present.mkdir()
    (present / sha256(b"compressed torch")).write_bytes(content)
    out = io.BytesIO()

    assert copy_missing(archive, present, out) == 0
    assert members(io.BytesIO(out.getvalue())) == members(archive)
