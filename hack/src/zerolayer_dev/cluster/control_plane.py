"""Command lines and configuration of etcd, the API server, the controller manager and the scheduler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.plan import Component, Probe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from zerolayer_dev.cluster.layout import Addresses, State

_ETCD = "127.0.0.1:2379"

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
        {"level": "Metadata"},
    ],
}

# Kubernetes' own values are for clusters that live for years; a test has seconds.
HPA_FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=5s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=5s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=10s",
)


def write_configuration(state: State) -> None:
    """Write the configuration files of the control plane."""
    (state.config / "audit-policy.yaml").write_text(json.dumps(AUDIT_POLICY))


def components(state: State, addresses: Addresses, binaries: Mapping[str, Path]) -> tuple[Component, ...]:
    """Return the control plane's components.

    Args:
        state: the cluster's folder.
        addresses: of the cluster.
        binaries: where each program lies.
    """
    return (
        _etcd(state, binaries["etcd"]),
        _api_server(state, addresses, binaries["kube-apiserver"]),
        _controller_manager(state, binaries["kube-controller-manager"]),
        _scheduler(state, binaries["kube-scheduler"]),
    )


def _etcd(state: State, program: Path) -> Component:
    return Component(
        "etcd",
        (
            str(program),
            f"--data-dir={state.etcd}",
            f"--listen-client-urls=http://{_ETCD}",
            f"--advertise-client-urls=http://{_ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            # The data does not outlive the cluster, so it need not outlive a power cut.
            "--unsafe-no-fsync",
        ),
        Probe("tcp", _ETCD),
    )


def _api_server(state: State, addresses: Addresses, program: Path) -> Component:
    pki = state.pki
    return Component(
        "kube-apiserver",
        (
            str(program),
            f"--etcd-servers=http://{_ETCD}",
            f"--advertise-address={addresses.node}",
            f"--service-cluster-ip-range={addresses.services}",
            f"--client-ca-file={pki}/ca.crt",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki}/service-account.pub",
            f"--service-account-signing-key-file={pki}/service-account.key",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
            f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
            f"--proxy-client-key-file={pki}/front-proxy-client.key",
            f"--audit-policy-file={state.config}/audit-policy.yaml",
            f"--audit-log-path={state.audit_log}",
            # Never rotated within a cluster's life: tests read it from its first line.
            "--audit-log-maxsize=4000",
            "--profiling=false",
        ),
        Probe("https", f"{addresses.api_url}/readyz", f"{pki}/ca.crt"),
        needs=("etcd",),
    )


def _controller_manager(state: State, program: Path) -> Component:
    pki = state.pki
    return Component(
        "kube-controller-manager",
        (
            str(program),
            *_client_flags(state, "controller-manager"),
            f"--root-ca-file={pki}/ca.crt",
            f"--service-account-private-key-file={pki}/service-account.key",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
            "--use-service-account-credentials=true",
            # After an outage of the API server a Lease is asked for again only after a pause of up to
            # a minute. With Kubernetes' 50 s its pods would be taken for lost meanwhile, now and then.
            "--node-monitor-grace-period=2m",
            *HPA_FLAGS,
        ),
        Probe("tcp", "127.0.0.1:10257"),
        needs=("kube-apiserver",),
    )


def _scheduler(state: State, program: Path) -> Component:
    return Component(
        "kube-scheduler",
        (str(program), *_client_flags(state, "scheduler")),
        Probe("tcp", "127.0.0.1:10259"),
        needs=("kube-apiserver",),
    )


def _client_flags(state: State, client: str) -> tuple[str, ...]:
    kubeconfig = state.config / f"{client}.kubeconfig"
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        # There is one of each. With an election it would end itself whenever the API server is away.
        "--leader-elect=false",
        "--profiling=false",
    )
