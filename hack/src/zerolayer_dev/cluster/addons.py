"""What runs as ordinary pods on a local node: DNS, metrics-server and Prometheus."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from zerolayer_dev.paths import repo_root

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from zerolayer_dev.cluster.layout import Addresses
    from zerolayer_dev.cluster.local import LocalCluster

IMAGES = ("pause", "coredns", "metrics-server", "prometheus")
_READY_TIMEOUT_S = 120


def install(cluster: LocalCluster, archives: Iterable[Path]) -> None:
    """Load the add-ons' images, apply their manifests and wait until all of them are available.

    Args:
        cluster: a node whose components are ready.
        archives: of the images in `IMAGES`.
    """
    for archive in archives:
        cluster.load_image(archive)
    cluster.kubectl("apply", "--filename=-", stdin=manifests(cluster.addresses))
    _wait(cluster, "Ready", "node", "--all")
    for namespace in ("kube-system", "monitoring"):
        _wait(cluster, "Available", "deployment", "--all", f"--namespace={namespace}")
    _wait(cluster, "Available", "apiservice", "v1beta1.metrics.k8s.io")


def _wait(cluster: LocalCluster, condition: str, *which: str) -> None:
    cluster.kubectl(
        *("wait", f"--for=condition={condition}", *which, f"--timeout={_READY_TIMEOUT_S}s"),
        timeout_s=_READY_TIMEOUT_S + 10,
    )


def manifests(addresses: Addresses) -> str:
    """Return the add-ons' manifests with a cluster's addresses filled in."""
    folder = repo_root() / "hack" / "cluster" / "manifests"
    documents = "\n---\n".join(path.read_text() for path in sorted(folder.glob("*.yaml")))
    return Template(documents).substitute(DNS_ADDRESS=str(addresses.dns))
