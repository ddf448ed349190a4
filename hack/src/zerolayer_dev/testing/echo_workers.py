"""Pods that stand where a pool's workers do and only tell their revision, and clients that count answers."""

import collections
import concurrent.futures
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing import echo_server
from zerolayer_operator.api import names

_CLIENTS = 8
_PORT = 8000
_GRACE_S = 10


@dataclass(frozen=True)
class EchoWorkers:
    """The workers of a pool's revisions.

    Attributes:
        cluster: that runs pods.
        namespace: of the pool; any Pod Security level will do.
        pool: its name.
        image: with a `python3`.
    """

    cluster: Cluster
    namespace: str
    pool: str
    image: str

    def start(self, sizes: Mapping[str, int]) -> None:
        """Starts so many workers of each revision, and waits until they are ready."""
        objects = [self._program(), *(self._deployment(name, size) for name, size in sizes.items())]
        manifest = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.cluster.kubectl("-n", self.namespace, "apply", "--filename=-", stdin=json.dumps(manifest))
        for revision in sizes:
            self._wait_ready(revision)

    def replace(self, revision: str) -> None:
        """Deletes the workers of a revision, and waits until they are gone and others are ready."""
        selector = names.selector_string(names.revision_selector(self.pool, revision))
        self.cluster.kubectl("-n", self.namespace, "delete", "pod", f"--selector={selector}")
        self._wait_ready(revision)

    def _wait_ready(self, revision: str) -> None:
        name = f"deployment/{names.deployment_name(self.pool, revision)}"
        self.cluster.kubectl("-n", self.namespace, "rollout", "status", name, "--timeout=90s")

    def _program(self) -> dict[str, Any]:
        source = Path(echo_server.__file__).read_text(encoding="utf-8")
        metadata = {"name": "echo", "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"echo.py": source}}

    def _deployment(self, revision: str, size: int) -> dict[str, Any]:
        labels = names.revision_selector(self.pool, revision)
        container = {
            "name": "echo",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "/echo/echo.py", "", str(_PORT), revision],
            "ports": [{"name": "http", "containerPort": _PORT}],
            "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 1},
            "volumeMounts": [{"name": "program", "mountPath": "/echo"}],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        pod = {
            "terminationGracePeriodSeconds": _GRACE_S,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "program", "configMap": {"name": "echo"}}],
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": names.deployment_name(self.pool, revision), "namespace": self.namespace},
            "spec": {
                "replicas": size,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }


def ask(url: str, count: int, headers: Mapping[str, str] | None = None) -> collections.Counter[str]:
    """Asks so often, with a few clients at once, and returns how often each name answered.

    Raises:
        httpx.HTTPError: a request failed, or was answered with an error.
    """
    share, rest = divmod(count, _CLIENTS)
    counts = [share + (number < rest) for number in range(_CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(_CLIENTS) as clients:
        answers = clients.map(lambda number: _ask(url, number, dict(headers or {})), counts)
        return sum(answers, collections.Counter[str]())


def _ask(url: str, count: int, headers: dict[str, str]) -> collections.Counter[str]:
    with httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as client:
        return collections.Counter(
            str(client.get("/").raise_for_status().json()["name"]) for _ in range(count)
        )
