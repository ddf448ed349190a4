"""Whether a cluster's Services still follow what the API server says."""

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.waiting import wait_for

_NAMESPACE = "default"
_CONNECT_SECONDS = 1


def wait_until_followed(cluster: Cluster, *, seconds: float = 240) -> None:
    """Waits until a Service made now can be connected to.

    After an outage of the API server kube-proxy asks again only after a growing pause. Until then new
    Services lead nowhere, and old ones lead to workers that are gone.

    Raises:
        StillWaitingError: it can't within `seconds`.
    """
    with _probe_service(cluster) as address:
        wait_for(lambda: _connects(address), what="a new Service to lead somewhere", seconds=seconds)


@contextmanager
def _probe_service(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Yields address and port of a new Service that leads to the API server."""
    name = f"probe-{secrets.token_hex(3)}"
    known = json.loads(cluster.kubectl("-n", _NAMESPACE, "get", "endpointslice", "kubernetes", "-o", "json"))
    manifests = probe_manifests(name, known)
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(manifests))
    try:
        service = json.loads(cluster.kubectl("-n", _NAMESPACE, "get", "service", name, "-o", "json"))
        yield service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"]
    finally:
        cluster.kubectl("-n", _NAMESPACE, "delete", "service,endpointslice", name)


def probe_manifests(name: str, known: Manifest) -> Manifest:
    """Returns a Service without selector and its endpoints, which are those of a known EndpointSlice."""
    metadata = {"name": name, "namespace": _NAMESPACE}
    (port,) = known["ports"]
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": name}},
        "addressType": known["addressType"],
        "ports": [port],
        "endpoints": known["endpoints"],
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": [{"name": port["name"], "port": 443, "targetPort": port["port"]}]},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [endpoints, service]}


def _connects(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
