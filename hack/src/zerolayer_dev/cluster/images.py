"""Images of a local node: a store that outlives clusters, and OCI archives loaded into it."""

from __future__ import annotations

import json
import os
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.locks import try_hold
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class ArchivedImage:
    """An image in an OCI archive.

    Attributes:
        name: full reference, such as `zerolayer.dev/worker:dev`.
        digest: of its manifest.
    """

    name: str
    digest: str

    @property
    def repository(self) -> str:
        """The name without the tag."""
        return self.name.rpartition(":")[0]


def archived_images(archive: Path) -> list[ArchivedImage]:
    """Return the images in an OCI archive.

    Raises:
        ValueError: it is no OCI archive, or an image in it has no full reference.
    """
    with tarfile.open(archive) as tar:
        try:
            file = tar.extractfile("index.json")
        except KeyError:
            file = None
        if file is None:
            raise ValueError(f"{archive} is no OCI archive: it holds no index.json")
        return images_of_index(json.load(file), archive)


def images_of_index(index: dict[str, list[dict[str, object]]], archive: Path) -> list[ArchivedImage]:
    """Return the images that the index of an archive names."""
    found: list[ArchivedImage] = []
    for manifest in index["manifests"]:
        annotations = manifest.get("annotations", {})
        names = annotations if isinstance(annotations, dict) else {}
        # Docker gives the full reference under a name of its own, and the tag alone under the common one.
        name = names.get("io.containerd.image.name", names.get("org.opencontainers.image.ref.name"))
        if not isinstance(name, str) or "/" not in name or ":" not in name:
            raise ValueError(f"{archive} names its image {name!r}; use oci-archive:FILE:REGISTRY/NAME:TAG")
        found.append(ArchivedImage(name, str(manifest["digest"])))
    return found


def parse_image_list(text: str) -> dict[str, str]:
    """Return reference → digest out of what `ctr images list` prints."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[0]: row[2] for row in rows if len(row) > 2}  # noqa: PLR2004 - REF TYPE DIGEST


def replaced_images(present: Mapping[str, str]) -> list[str]:
    """Return the references that keep images alive whose name has gone to a newer build.

    Kubernetes' side of containerd refers to every image by its configuration's digest as
    well, and that reference stays when the name moves on.

    Args:
        present: reference → digest of the manifest.
    """
    named = {digest for reference, digest in present.items() if not reference.startswith("sha256:")}
    return [item for item, digest in present.items() if item.startswith("sha256:") and digest not in named]


@contextmanager
def free_store() -> Iterator[tuple[Path, int]]:
    """Lock the first image store that no running node uses; yield its folder and the lock.

    A store keeps unpacked images from one cluster to the next, whatever their names; two
    nodes at the same time need two. The lock is a descriptor: whichever program inherits
    it holds the store for as long as it runs.
    """
    root = cache_dir() / "containerd"
    number = 0
    while (descriptor := try_hold(root / f"{number}.lock")) is None:
        number += 1
    os.set_inheritable(descriptor, True)
    try:
        store = root / str(number)
        store.mkdir(exist_ok=True)
        yield store, descriptor
    finally:
        os.close(descriptor)
