"""`kubectl port-forward`, the way by which people reach what listens on a pod's loopback address."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.api import Cluster


@contextmanager
def forwarded(cluster: Cluster, namespace: str, target: str, port: int) -> Iterator[str]:
    """Forwards a port for as long as the `with` block runs, and yields the URL on this machine.

    Args:
        cluster: the one to forward from.
        namespace: of the target.
        target: as kubectl names it, such as `deployment/zerolayer`.
        port: of the pod.

    Raises:
        RuntimeError: kubectl ended before it forwarded.
    """
    kubectl = binaries.ensure(["kubectl"])["kubectl"]
    command = [str(kubectl), "--namespace", namespace, "port-forward", target, f":{port}"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            found = re.search(r"127\.0\.0\.1:(\d+)", said)
            if found is None:
                raise RuntimeError(f"{' '.join(command)} said: {said!r}")
            yield f"http://127.0.0.1:{found[1]}/"
        finally:
            process.terminate()
