"""The real Traefik as a gateway: a process on this machine, beside a cluster whose pods it reaches."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.cluster.module_files import ensure_folder
from zerolayer_dev.testing.account import token_kubeconfig
from zerolayer_dev.testing.ports import free_port
from zerolayer_dev.testing.waiting import wait_for

NAME = "gate"
NAMESPACE = "gateways"
_ACCOUNT_NAMESPACE, _ACCOUNT = "default", "traefik-controller"
_CLASS = "traefik"
_API = "gateway.networking.k8s.io/v1"
_THROTTLE = "100ms"
_START_S = 60


def build() -> None:
    """Builds Traefik and fetches the definitions of the Gateway API, where they are missing."""
    binaries.ensure(["traefik"])
    _definitions()
    _rights()


def define(cluster: LocalCluster) -> None:
    """Defines the Gateway API, in its standard channel."""
    # Applied by the server: some of the definitions are too large for the client's annotation.
    cluster.kubectl("apply", "--server-side", f"--filename={_definitions()}")
    cluster.kubectl("wait", "--for=condition=Established", "crd/httproutes.gateway.networking.k8s.io")


def _definitions() -> Path:
    return ensure_folder("traefik", "config/crd/standard", "sigs.k8s.io/gateway-api")


def _rights() -> Path:
    return ensure_folder("traefik", "docs/content/reference/dynamic-configuration")


class Gateway:
    """A Gateway called `gate` in the namespace `gateways`, which takes the HTTPRoutes of every namespace.

    It listens on the host's end of the link to the cluster, so that pods and this machine reach it. Its
    rights are those in Traefik's own documentation. It heeds a change within a fraction of a second.

    Args:
        cluster: which knows no Gateway API yet, or the same one.
        folder: for credentials and logs.
        by_cluster_ip: whether it leads requests to Services by their ClusterIP, which kube-proxy serves on a
            node. Where it leads them to pods by itself it answers 503 as soon as the last one is about to
            end, though that one still answers.
        level: of its log; only `DEBUG` tells of answers that were cut.
    """

    def __init__(
        self, cluster: LocalCluster, folder: Path, *, by_cluster_ip: bool = True, level: str = "INFO"
    ) -> None:
        self._level = level
        self._cluster = cluster
        self._folder = folder
        self._by_cluster_ip = by_cluster_ip
        self._host = str(cluster.addresses.host)
        self._port, self._api_port = free_port(self._host), free_port(self._host)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it takes requests."""
        return f"http://{self._host}:{self._port}"

    @property
    def parent_ref(self) -> dict[str, str]:
        """What a route, or a pool's `routing.gateway.parentRefs`, names it by."""
        return {"name": NAME, "namespace": NAMESPACE}

    def __enter__(self) -> Self:
        """Defines the Gateway API, makes the Gateway and starts Traefik."""
        self.install()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends Traefik; what was made in the cluster stays."""
        self.stop()

    def install(self) -> None:
        """Defines the Gateway API and makes the Gateway."""
        define(self._cluster)
        rights = (_rights() / "kubernetes-gateway-rbac.yml").read_text(encoding="utf-8")
        self._cluster.kubectl("apply", "--filename=-", stdin=rights)
        self._cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(self._objects()))
        token_kubeconfig(self._cluster, _ACCOUNT_NAMESPACE, _ACCOUNT, self._kubeconfig)

    def start(self) -> None:
        """Starts Traefik, and waits until it listens and its Gateway says that it works.

        Raises:
            StillWaitingError: it does not; what it said is a note.
        """
        command = [str(binaries.ensure(["traefik"])["traefik"]), *self._arguments()]
        environment = {"PATH": os.environ["PATH"], "KUBECONFIG": str(self._kubeconfig)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_for(self._listens, what="Traefik to listen", seconds=_START_S)
            self._cluster.kubectl(
                *("-n", NAMESPACE, "wait", "--for=condition=Programmed", f"gateway/{NAME}"),
                f"--timeout={_START_S}s",
            )
        except Exception as error:
            error.add_note(self.log())
            self.stop()
            raise

    def stop(self) -> None:
        """Ends Traefik at whatever point it is; nothing happens if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def log(self) -> str:
        """What Traefik said last, for the message of a test that fails."""
        return self._log.read_text(encoding="utf-8")[-3000:] if self._log.exists() else ""

    def attach(self, route: dict[str, Any]) -> float:
        """Applies a route as the operator does, and waits until the Gateway leads requests by it.

        Returns:
            When the API server had it, in monotonic seconds.

        Raises:
            StillWaitingError: the Gateway does not.
        """
        self._cluster.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(route))
        applied_at = time.monotonic()
        what = f"the Gateway to lead requests by HTTPRoute {route['metadata']['name']}"
        wanted = expected_weights(route)
        wait_for(lambda: self.weights(route), until=lambda seen: seen == wanted, what=what, seconds=30)
        return applied_at

    def weights(self, route: dict[str, Any]) -> list[dict[str, int]]:
        """By which weights it leads requests to Services now, for each of a route's rules, sorted.

        It answers a moment later by a new route than it says so in the route's status.
        """
        with urllib.request.urlopen(
            f"http://{self._host}:{self._api_port}/api/rawdata", timeout=10
        ) as answer:
            services = json.load(answer).get("services", {})
        metadata = route["metadata"]
        prefix = f"httproute-{metadata['namespace']}-{metadata['name']}-gw-"
        found = (item["weighted"] for name, item in services.items() if name.startswith(prefix))
        return _sorted({one["name"]: one["weight"] for one in item["services"]} for item in found)

    def lines(self) -> Sequence[str]:
        """All that Traefik said."""
        return self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else ()

    @property
    def _kubeconfig(self) -> Path:
        return self._folder / "traefik.kubeconfig"

    @property
    def _log(self) -> Path:
        return self._folder / "traefik.log"

    def _listens(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("Traefik has ended")
        try:
            socket.create_connection((self._host, self._port), timeout=1).close()
        except OSError:
            return False
        return True

    def _arguments(self) -> Sequence[str]:
        return (
            "--global.checkNewVersion=false",
            "--global.sendAnonymousUsage=false",
            f"--log.level={self._level}",
            "--log.noColor=true",
            f"--entryPoints.web.address={self._host}:{self._port}",
            # Where it tells what it does.
            "--api.insecure=true",
            f"--entryPoints.traefik.address={self._host}:{self._api_port}",
            "--providers.kubernetesGateway=true",
            # By default it heeds one change in two seconds.
            f"--providers.providersThrottleDuration={_THROTTLE}",
            f"--providers.kubernetesGateway.throttleDuration={_THROTTLE}",
            f"--providers.kubernetesGateway.nativeLBByDefault={str(self._by_cluster_ip).lower()}",
        )

    def _objects(self) -> Iterator[dict[str, Any]]:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        metadata = {"name": _ACCOUNT, "namespace": _ACCOUNT_NAMESPACE}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        controller = {"controllerName": "traefik.io/gateway-controller"}
        yield {"apiVersion": _API, "kind": "GatewayClass", "metadata": {"name": _CLASS}, "spec": controller}
        listener = {
            "name": "web",
            "protocol": "HTTP",
            "port": self._port,
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }
        yield {
            "apiVersion": _API,
            "kind": "Gateway",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {"gatewayClassName": _CLASS, "listeners": [listener]},
        }


def expected_weights(route: dict[str, Any]) -> list[dict[str, int]]:
    """What `Gateway.weights` tells once it leads requests by a route."""
    namespace = route["metadata"]["namespace"]
    return _sorted(
        {f"{namespace}-{one['name']}-http-{one['port']}": one["weight"] for one in rule["backendRefs"]}
        for rule in route["spec"]["rules"]
    )


def _sorted(weights: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    return sorted(weights, key=lambda item: sorted(item.items()))
