"""Stands in for nodes where a cluster has none: says of a pool's pods that they run and are ready."""

import json
from datetime import UTC, datetime
from typing import Any

import pykube

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.cluster.commands import CommandError
from zerolayer_dev.testing.kube import Manifest, objects
from zerolayer_dev.testing.pools import POOL_LABEL, is_ready


def make_ready(cluster: Cluster, api: pykube.HTTPClient, namespace: str, pool: str) -> int:
    """Marks every pod of a pool ready that is not, and returns how many that were.

    Args:
        cluster: that runs no pods.
        api: its client.
        namespace: of the pool.
        pool: by name.
    """
    pods = [
        pod
        for pod in objects(api, pykube.Pod, namespace=namespace, selector={POOL_LABEL: pool})
        if not is_ready(pod)
    ]
    for pod in pods:
        patch = json.dumps({"status": ready_status(pod)})
        try:
            cluster.kubectl(
                "-n", namespace, "patch", "pod", pod["metadata"]["name"], "--subresource=status",
                "--type=strategic", f"--patch={patch}",
            )  # fmt: skip
        except CommandError as error:
            # A pod may have been deleted since it was listed.
            if "NotFound" not in str(error):
                raise
    return len(pods)


def ready_status(pod: Manifest, address: str | None = None, begun: str | None = None) -> dict[str, Any]:
    """The status of a pod that has become ready just now.

    Args:
        pod: as it is.
        address: its IP address, if it gets one.
        begun: when it got its node and began to run, as the API writes times; just now without it.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    begun = begun or now
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": since}
        for kind, since in (
            ("PodScheduled", begun), ("Initialized", begun), ("ContainersReady", now), ("Ready", now)
        )
    ]  # fmt: skip
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": begun}},
        }
        for container in pod["spec"]["containers"]
    ]
    status = {
        "phase": "Running",
        "startTime": begun,
        "conditions": conditions,
        "containerStatuses": containers,
    }
    return status | ({"podIP": address, "podIPs": [{"ip": address}]} if address is not None else {})
