"""OCI archives put together from layers that are compressed once and kept.

A change of code adds a small layer to gigabytes that stay the same; neither buildah nor containerd should
have to touch those again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import time
from dataclasses import dataclass
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_BLOBS = "blobs/sha256/"
_KEPT_DAYS = 14


@dataclass(frozen=True)
class LayerPool:
    """Compressed layers by the digest of their uncompressed content (`diff id`, 64 hex digits).

    Attributes:
        folder: Holds `DIFF_ID.json`, the layer's descriptor in a manifest, and `DIFF_ID.blob`.
    """

    folder: Path

    def descriptor(self, diff_id: str) -> dict[str, Any] | None:
        """The layer's entry in a manifest, or nothing where the pool does not hold the layer."""
        path = self.folder / f"{diff_id}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def blob(self, diff_id: str) -> Path:
        """The file of a layer that the pool holds."""
        return self.folder / f"{diff_id}.blob"

    def add(self, diff_id: str, descriptor: Mapping[str, Any], blob: Path) -> None:
        """Take over the file `blob`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        blob.rename(self.blob(diff_id))
        (self.folder / f"{diff_id}.json").write_text(json.dumps(descriptor))

    def prune(self, used: Collection[str], now: float) -> None:
        """Note the layers `used` now; forget those that were not for two weeks."""
        for diff_id in used:
            os.utime(self.folder / f"{diff_id}.json", (now, now))
        for path in self.folder.glob("*.json"):
            if now - path.stat().st_mtime > _KEPT_DAYS * 86_400:
                path.unlink()
                path.with_suffix(".blob").unlink(missing_ok=True)


def prepare_layout(layout: Path, pool: LayerPool, diff_ids: Sequence[str]) -> None:
    """Make an OCI layout in which the layers of the pool seem to be present already.

    What pushes into it skips a layer whose blob is there; an empty file will do, because the layout never
    leaves this function's caller: `collect` takes the real blobs from the pool.
    """
    blobs = layout / _BLOBS
    blobs.mkdir(parents=True)
    for diff_id in diff_ids:
        if pool.descriptor(diff_id) is not None:
            (blobs / diff_id).touch()


def collect(layout: Path, pool: LayerPool, diff_ids: Sequence[str], reference: str, archive: Path) -> None:
    """Write `archive` from what was pushed into `layout` and from the pool, to which new layers go.

    Args:
        layout: An OCI layout that holds one image.
        pool: Where the layers are kept.
        diff_ids: The image's layers, lowest first.
        reference: The image's full name.
        archive: The file to write.
    """
    blobs = layout / _BLOBS
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads((blobs / _hex(index["manifests"][0]["digest"])).read_text())
    descriptors: list[dict[str, Any]] = []
    for diff_id, pushed in zip(diff_ids, manifest["layers"], strict=True):
        known = pool.descriptor(diff_id)
        if known is None:
            pool.add(diff_id, pushed, blobs / _hex(pushed["digest"]))
        descriptors.append(known or pushed)
    manifest["layers"] = descriptors
    config = (blobs / _hex(manifest["config"]["digest"])).read_bytes()
    layers = {
        _hex(layer["digest"]): pool.blob(name) for name, layer in zip(diff_ids, descriptors, strict=True)
    }
    _write(archive, reference, json.dumps(manifest).encode(), config, layers)
    pool.prune(diff_ids, time.time())


def _write(archive: Path, reference: str, manifest: bytes, config: bytes, layers: Mapping[str, Path]) -> None:
    digest = hashlib.sha256(manifest).hexdigest()
    index = {
        "schemaVersion": 2,
        "manifests": [
            {
                "mediaType": _MANIFEST_TYPE,
                "digest": f"sha256:{digest}",
                "size": len(manifest),
                "annotations": {"org.opencontainers.image.ref.name": reference},
            }
        ],
    }
    small = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps(index).encode(),
        _BLOBS + digest: manifest,
        _BLOBS + hashlib.sha256(config).hexdigest(): config,
    }
    with tarfile.open(archive, "w") as tar:
        for name, content in small.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, BytesIO(content))
        for name, path in layers.items():
            tar.add(path, _BLOBS + name)


def copy_missing(archive: Path, present: Path, out: IO[bytes]) -> int:
    """Write the archive to `out` without the layers that are in the folder `present` already.

    Args:
        archive: An OCI archive.
        present: A folder of blobs named by their digest's 64 hex digits, such as containerd's.
        out: Where to write; need not be seekable.

    Returns:
        Bytes of the layers left out.
    """
    left_out = 0
    with tarfile.open(archive) as source, tarfile.open(fileobj=out, mode="w|") as target:
        for entry in source:
            name = entry.name.removeprefix(_BLOBS)
            held = present / name
            if name != entry.name and held.is_file() and held.stat().st_size == entry.size:
                left_out += entry.size
            else:
                target.addfile(entry, source.extractfile(entry) if entry.isfile() else None)
    return left_out


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
