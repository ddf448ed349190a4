"""Names, addresses and folders of a local cluster: pure, from its name and slot alone.

Every cluster on a machine has a slot number. The slot decides its addresses, so
that clusters beside each other never share one. The addresses come from
198.18.0.0/15, which is set aside for benchmarks (RFC 2544): no network that the
host may have to reach uses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from pathlib import Path

_NETWORK = IPv4Network("198.18.0.0/15")
_SLOT_PREFIX = 20
SLOTS = 2 ** (_SLOT_PREFIX - _NETWORK.prefixlen)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


class Size(StrEnum):
    """How much of a cluster to start."""

    CONTROL_PLANE = "control-plane"
    """etcd, API server, controller manager and scheduler: nothing runs pods."""
    NODE = "node"
    """A whole node on top: containerd, kubelet, kube-proxy, DNS, metrics."""


@dataclass(frozen=True)
class Addresses:
    """The addresses of the cluster in one slot.

    Attributes:
        services: ClusterIPs are taken from here.
        pods: pod addresses are taken from here.
        host: the host's end of the link to the cluster.
        node: the cluster's end; the API server listens there.
        kubernetes: ClusterIP of the service `kubernetes.default`.
        dns: ClusterIP of the cluster's DNS.
    """

    services: IPv4Network
    pods: IPv4Network
    host: IPv4Address
    node: IPv4Address
    kubernetes: IPv4Address
    dns: IPv4Address

    @classmethod
    def of_slot(cls, slot: int) -> Addresses:
        """Return the addresses of a slot.

        Args:
            slot: 0 to `SLOTS` - 1.

        Raises:
            ValueError: the slot does not exist.
        """
        if not 0 <= slot < SLOTS:
            raise ValueError(f"slot {slot} is not in 0..{SLOTS - 1}")
        base = int(_NETWORK.network_address) + (slot << (32 - _SLOT_PREFIX))
        lower, upper = IPv4Network((base, _SLOT_PREFIX)).subnets()
        services, links = lower.subnets()
        return cls(
            services=services,
            pods=upper,
            host=links[1],
            node=links[2],
            kubernetes=services[1],
            dns=services[10],
        )

    @property
    def api_url(self) -> str:
        """URL of the API server, from the host and from inside the cluster."""
        return f"https://{self.node}:6443"


def interface_name(slot: int) -> str:
    """Return the name of the network interface on the host that leads to a slot's cluster."""
    return f"zerolayer{slot}"


def check_name(name: str) -> str:
    """Return a cluster's name if it can be a host name and a folder.

    Raises:
        ValueError: it is not a DNS label of at most 40 characters.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"cluster name {name!r}: use lower-case letters, digits and '-', at most 40 characters"
        )
    return name


@dataclass(frozen=True)
class State:
    """The folder of one cluster and what lies in it. All of it goes when the cluster ends."""

    root: Path

    @classmethod
    def of(cls, name: str) -> State:
        """Return the folder of the cluster with this name; it need not exist yet."""
        return cls(clusters_dir() / check_name(name))

    @property
    def record(self) -> Path:
        """What `up` wrote down about the running cluster (`Record`)."""
        return self.root / "cluster.json"

    @property
    def plan(self) -> Path:
        """What the supervisor is to run."""
        return self.root / "plan.json"

    @property
    def control(self) -> Path:
        """The supervisor's socket."""
        return self.root / "control.sock"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def config(self) -> Path:
        """Configuration files of the components, and their kubeconfigs."""
        return self.root / "config"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.root / "kubeconfig"

    @property
    def etcd(self) -> Path:
        """Data of etcd."""
        return self.root / "etcd"

    @property
    def logs(self) -> Path:
        """One log file per component."""
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """Audit log of the API server: one JSON object per line."""
        return self.logs / "audit.log"

    @property
    def mounts(self) -> Path:
        """Folders that are mounted over /var/lib/kubelet and such inside the namespaces."""
        return self.root / "mounts"


def clusters_dir() -> Path:
    """Return the folder that holds one folder per local cluster."""
    path = cache_dir() / "clusters"
    path.mkdir(exist_ok=True)
    return path


def cgroup_name(name: str) -> str:
    """Return the control group under which a cluster's containers run, below each hierarchy's root."""
    return f"zerolayer-{name}"
