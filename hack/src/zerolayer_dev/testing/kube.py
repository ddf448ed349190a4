"""Plain reads from an API server."""

import atexit
import base64
import secrets
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pykube
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

Manifest = dict[str, Any]


def client(kubeconfig: Path) -> pykube.HTTPClient:
    """Returns a client for the only context of a kubeconfig."""
    document = yaml.safe_load(kubeconfig.read_text())
    for part in (*document["clusters"], *document["users"]):
        _keep_privately(part.get("cluster") or part.get("user"))
    return pykube.HTTPClient(pykube.KubeConfig(document), timeout=30)


def _keep_privately(part: dict[str, str]) -> None:
    """Puts keys and certificates into files of ours: pykube would leave them in /tmp for all to read."""
    for key in [key for key in part if key.endswith("-data")]:
        path = Path(_folder().name) / secrets.token_hex(8)
        path.write_bytes(base64.b64decode(part.pop(key)))
        part[key.removesuffix("-data")] = str(path)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that only we can read, removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="zerolayer-kube-")
    atexit.register(folder.cleanup)
    return folder


def objects(api: pykube.HTTPClient, kind: type[pykube.objects.APIObject], **filters: Any) -> list[Manifest]:
    """Returns objects as the API server sends them, oldest first.

    Args:
        api: client of the cluster.
        kind: pykube's class for the kind.
        filters: `namespace`, `selector`, `field_selector`.
    """
    query = kind.objects(api).filter(**filters)
    found = [item.obj for item in cast("Iterable[pykube.objects.APIObject]", query)]
    return sorted(found, key=lambda item: (item["metadata"]["creationTimestamp"], item["metadata"]["name"]))
