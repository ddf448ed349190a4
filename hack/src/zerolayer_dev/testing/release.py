"""The operator as a Helm release on a cluster: installed, upgraded, killed, read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pykube
import yaml

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing.kube import objects
from zerolayer_dev.testing.waiting import wait_for

RELEASE = "zerolayer"
NAMESPACE = "zerolayer-system"
METRICS_PORT = 9090
_SELECTOR = {"app.kubernetes.io/name": "zerolayer-operator"}

Values = dict[str, Any]


class Release:
    """One installation of the chart.

    Args:
        cluster: where it runs.
        api: a client of that cluster.
        chart: folder of the chart.
    """

    def __init__(self, cluster: Cluster, api: pykube.HTTPClient, chart: Path) -> None:
        self._cluster = cluster
        self._api = api
        self._chart = chart
        self._upheavals: list[tuple[datetime, datetime]] = []

    @property
    def user(self) -> str:
        """The operator's name in the audit log."""
        (pod,) = self.pods()[:1]
        return f"system:serviceaccount:{NAMESPACE}:{pod['spec']['serviceAccountName']}"

    def install(self, values: Values, *, seconds: float = 120) -> None:
        """Installs or upgrades to exactly these values, and waits until the operator is ready."""
        self._cluster.helm(
            "upgrade", RELEASE, str(self._chart), "--install", "--create-namespace", "--reset-values",
            f"--namespace={NAMESPACE}", "--values=-", "--wait", f"--timeout={seconds:.0f}s",
            stdin=yaml.safe_dump(values),
        )  # fmt: skip

    def uninstall(self) -> None:
        """Uninstalls the chart and waits until the operator is gone."""
        with self.upheaval():
            self._cluster.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait")
            wait_for(lambda: not self.pods(), what="the operator to be gone", seconds=60)

    @contextmanager
    def upheaval(self) -> Iterator[None]:
        """Marks a time in which refused calls say nothing about the chart's rights.

        An uninstall takes the rights away before the process has ended, and an API server that has just
        started does not know them yet.
        """
        began = datetime.now(UTC)
        yield
        self._upheavals.append((began, datetime.now(UTC)))

    def in_upheaval(self, at: datetime) -> bool:
        """Tells whether a moment lies in such a time."""
        return any(began <= at <= ended for began, ended in self._upheavals)

    def pods(self) -> list[dict[str, Any]]:
        """Returns the operator's pods, oldest first."""
        return objects(self._api, pykube.Pod, namespace=NAMESPACE, selector=_SELECTOR)

    def kill(self) -> bool:
        """Kills the operator with SIGKILL, as a lost node would, and lets a new pod take its place.

        The pod is deleted after the kill because the kubelet waits longer before each restart of a
        container that was killed often.

        Returns:
            Whether a process ran that was killed.
        """
        killed = False
        for pod in self.pods():
            name = pod["metadata"]["name"]
            for status in pod["status"].get("containerStatuses", ()):
                container = status.get("containerID", "").rpartition("/")[2]
                if container and "running" in status["state"]:
                    self._cluster.exec_in_node(
                        ["ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", container]
                    )
                    killed = True
            self._cluster.kubectl(
                "-n", NAMESPACE, "delete", "pod", name, "--grace-period=0", "--force", "--wait=false",
                "--ignore-not-found",
            )  # fmt: skip
        return killed

    def metric(self, name: str) -> float:
        """Returns one of the operator's metrics that has no labels, 0 before its first value."""
        (pod,) = self.pods()
        url = f"http://{pod['status']['podIP']}:{METRICS_PORT}/metrics"
        text = httpx.get(url, trust_env=False, timeout=10).raise_for_status().text
        found = re.search(rf"^{re.escape(name)} (\S+)", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def logs(self) -> str:
        """Returns what the running operator logged, and its previous container where there was one."""
        return "\n".join(
            self._cluster.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"], "--tail=-1")
            for pod in self.pods()
            if pod["status"].get("phase") == "Running"
        )
