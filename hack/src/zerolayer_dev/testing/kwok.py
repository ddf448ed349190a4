"""Nodes and pods that kwok simulates beside a control plane, with nothing behind them."""

import json
import subprocess
from pathlib import Path

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.paths import repo_root

PODS_PER_NODE = 250

TIED = ("/usr/bin/setpriv", "--pdeathsig=KILL", "--")
"""Has a program end with the one that started it, even if that is killed."""


class Kwok:
    """kwok as a process of its own, which plays the kubelet of every node.

    Args:
        cluster: A control plane without nodes; pods get addresses of its range for pods.
        folder: Where its log goes.
    """

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._program = binaries.ensure(["kwok"])["kwok"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, nodes: int) -> None:
        """Starts it and waits until so many nodes are ready."""
        arguments = (
            f"--kubeconfig={self._cluster.kubeconfig}",
            f"--config={repo_root() / 'hack' / 'cluster' / 'kwok' / 'stages.yaml'}",
            f"--cidr={self._cluster.addresses.pods}",
            f"--node-ip={self._cluster.addresses.node}",
            "--manage-all-nodes=true",
            # Without Leases the controller manager would take the nodes for dead after a minute.
            "--node-lease-duration-seconds=40",
        )
        # It would read further configuration from the user's own folder.
        environment = {"HOME": str(self._folder)}
        with (self._folder / "kwok.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*TIED, str(self._program), *arguments], env=environment, stdout=log, stderr=log
            )
        self._cluster.kubectl("create", "--filename=-", stdin=json.dumps(_nodes(nodes)))
        self._cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")

    def stop(self) -> None:
        """Ends it; nothing happens if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None


def _nodes(count: int) -> dict[str, object]:
    names = [f"kwok-{number}" for number in range(count)]
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names]
    return {"apiVersion": "v1", "kind": "List", "items": items}
