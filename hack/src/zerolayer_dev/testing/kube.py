"""Plain reads from an API server."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pykube

if TYPE_CHECKING:
    from collections.abc import Iterable

Manifest = dict[str, Any]


def client(kubeconfig: Path) -> pykube.HTTPClient:
    """Returns a client for the only context of a kubeconfig."""
    return pykube.HTTPClient(pykube.KubeConfig.from_file(str(kubeconfig)), timeout=30)


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
