"""The real KEDA as processes on this machine, beside a cluster that runs no pods."""

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.cluster.module_files import ensure_folder
from zerolayer_dev.testing.account import token_kubeconfig
from zerolayer_dev.testing.ports import free_port

_NAMESPACE = "keda"
_ACCOUNT = "keda-operator"
_ADAPTER = "keda-metrics-apiserver"
_KUBECONFIGS = ("lister", "authentication", "authorization")
_CERTIFICATES_S = 60
_SECRET = "kedaorg-certs"  # noqa: S105 - the name of one, no secret
USER = f"system:serviceaccount:{_NAMESPACE}:{_ACCOUNT}"
"""As whom both programs act; KEDA's own definitions have it so."""


def build() -> None:
    """Builds KEDA and fetches its definitions, where they are missing."""
    binaries.ensure(binaries.KEDA)
    ensure_folder("keda-operator", "config")


class Keda:
    """Operator and metrics adapter, with the definitions, rights and certificates that KEDA has in a cluster.

    Definitions and rights are those in its own source. Its operator makes the certificates, as it does in a
    cluster; they are put where both programs look for them, which a node would do. Its webhook, which refuses
    some ScaledObjects in advance, is not there.

    Args:
        cluster: which has no KEDA yet.
        folder: for certificates, credentials and logs.
    """

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._certificates = folder / "certs"
        self._programs = binaries.ensure(binaries.KEDA)
        self._kubeconfig = folder / "kubeconfig"
        self._host = str(cluster.addresses.host)
        self._grpc_port, self._secure_port = free_port(), free_port(self._host)
        self._processes: list[subprocess.Popen[bytes]] = []

    def install(self) -> None:
        """Defines what KEDA brings along, and lets the API server ask its adapter for external metrics."""
        config = ensure_folder("keda-operator", "config")
        self._certificates.mkdir()
        for folder in ("general", "service_account", "crd", "rbac"):
            # Applied by the server: one of the definitions is too large for the client's annotation.
            self._kubectl("apply", "--server-side", f"--kustomize={config / folder}")
        for name in ("role", "role_binding"):
            self._kubectl("apply", f"--filename={config / 'metrics-server' / name}.yaml")
        self._kubectl("wait", "--for=condition=Established", "crd/scaledobjects.keda.sh")
        self._kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(self._registration(config)))
        token_kubeconfig(self._cluster, _NAMESPACE, _ACCOUNT, self._kubeconfig)
        self._make_certificates()

    def start(self) -> None:
        """Starts both programs, and waits until the API server gets metrics of them."""
        self._run("keda-operator", self._operator_arguments())
        self._run("keda-adapter", self._adapter_arguments())
        self._kubectl(
            "wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=90s"
        )

    def stop(self) -> None:
        """Ends both programs at whatever point they are; nothing happens if they do not run."""
        for process in self._processes:
            process.kill()
            process.wait(timeout=30)
        self._processes.clear()

    def log(self) -> str:
        """What the operator said last, for the message of a test that fails."""
        return (self._folder / "keda-operator.log").read_text(encoding="utf-8")[-3000:]

    def _registration(self, config: Path) -> Sequence[dict[str, Any]]:
        """KEDA's own, but for where its adapter is: outside of the cluster."""
        service = yaml.safe_load((config / "metrics-server" / "api_service.yaml").read_text(encoding="utf-8"))
        service["spec"]["service"]["port"] = self._secure_port
        external = {
            "type": "ExternalName",
            "externalName": self._host,
            "ports": [{"port": self._secure_port}],
        }
        metadata = {"name": _ADAPTER, "namespace": _NAMESPACE}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": external}, service

    def _operator_arguments(self) -> Sequence[str]:
        return (
            "--zap-encoder=console",
            "--enable-cert-rotation=true",
            "--enable-webhook-patching=false",
            f"--cert-dir={self._certificates}",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            f"--metrics-service-bind-address=127.0.0.1:{self._grpc_port}",
        )

    def _adapter_arguments(self) -> Sequence[str]:
        return (
            f"--bind-address={self._host}",
            f"--secure-port={self._secure_port}",
            "--port=0",
            f"--cert-dir={self._certificates}",
            f"--client-ca-file={self._certificates}/ca.crt",
            f"--tls-cert-file={self._certificates}/tls.crt",
            f"--tls-private-key-file={self._certificates}/tls.key",
            *(f"--{which}-kubeconfig={self._kubeconfig}" for which in _KUBECONFIGS),
            f"--metrics-service-address=127.0.0.1:{self._grpc_port}",
            f"--metrics-service-grpc-authority={_ACCOUNT}.{_NAMESPACE}.svc",
        )

    def _run(self, program: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(self._kubeconfig),
            "POD_NAMESPACE": _NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE,
            "WATCH_NAMESPACE": "",
        }
        command = [str(self._programs[program]), *arguments]
        with (self._folder / f"{program}.log").open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def _make_certificates(self) -> None:
        """Lets the operator make them; it ends itself then, to find them in place when it starts again."""
        try:
            self._run("keda-operator", self._operator_arguments()).wait(timeout=_CERTIFICATES_S)
        except subprocess.TimeoutExpired as error:
            error.add_note(self.log())
            raise
        finally:
            self.stop()
        secret = json.loads(self._kubectl("-n", _NAMESPACE, "get", "secret", _SECRET, "-o", "json"))
        for name, content in secret["data"].items():
            (self._certificates / name).write_bytes(base64.b64decode(content))

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl(*arguments, stdin=stdin)
