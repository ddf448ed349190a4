"""Stands in for nodes where a cluster has none: says of a pool's pods that they run and are ready."""

import json
from datetime import UTC, datetime

import pykube

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.cluster.commands import CommandError
from zerolayer_dev.testing.kube import objects
from zerolayer_dev.testing.pools import POOL_LABEL, is_ready


def make_ready(cluster: Cluster, api: pykube.HTTPClient, namespace: str, pool: str) -> int:
    """Marks every pod of a pool ready that is not, and returns how many that were."""
    pods = [
        pod
        for pod in objects(api, pykube.Pod, namespace=namespace, selector={POOL_LABEL: pool})
        if not is_ready(pod)
    ]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    for pod in pods:
        patch = {"status": {"phase": "Running", "startTime": now, "conditions": conditions}}
        try:
            cluster.kubectl(
                "-n", namespace, "patch", "pod", pod["metadata"]["name"], "--subresource=status",
                "--type=strategic", f"--patch={json.dumps(patch)}",
            )  # fmt: skip
        except CommandError as error:
            # A pod may have been deleted since it was listed.
            if "NotFound" not in str(error):
                raise
    return len(pods)
