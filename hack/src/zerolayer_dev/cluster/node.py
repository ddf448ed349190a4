"""Command lines and configuration of what a node runs: containerd, kubelet, kube-proxy, pod network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.layout import Addresses, State, cgroup_name
from zerolayer_dev.cluster.plan import Component, Mount, Probe

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
# Where containerd keeps the layers of images, below its store.
BLOBS = "io.containerd.content.v1.content/blobs/sha256"
PAUSE_IMAGE = "zerolayer.dev/pause:dev"

# kubelet insists on these, and they are the host's: it finds files that say what it wants to read.
_KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def write_configuration(
    state: State, name: str, addresses: Addresses, store: Path, cni_plugins: Path
) -> None:
    """Write the configuration files of the node's components.

    Args:
        state: the cluster's folder.
        name: of the cluster, which is also the node's.
        addresses: of the cluster.
        store: where containerd keeps images, beyond the cluster's life.
        cni_plugins: folder of the CNI plugins.
    """
    (state.config / "containerd.toml").write_text(containerd_config(state, store, cni_plugins))
    (state.config / "containerd-sweep.toml").write_text(sweep_config(store))
    network = state.config / "cni" / "10-pods.conflist"
    network.parent.mkdir()
    network.write_text(json.dumps(cni_config(addresses), indent=2))
    (state.config / "kubelet.yaml").write_text(json.dumps(kubelet_config(state, name, addresses), indent=2))
    (state.config / "resolv.conf").write_text("")
    for folder in ("lib", "log"):
        (state.mounts / folder).mkdir(parents=True)
    for setting, value in _KERNEL_SETTINGS.items():
        (state.mounts / setting.replace("/", ".")).write_text(value)


def mounts(state: State) -> tuple[Mount, ...]:
    """Return what lies over the host's folders, so that the node writes none of them."""
    return (
        Mount("/run"),
        Mount("/var/lib", str(state.mounts / "lib")),
        Mount("/var/log", str(state.mounts / "log")),
        *(
            Mount(f"/proc/sys/{name}", str(state.mounts / name.replace("/", ".")))
            for name in _KERNEL_SETTINGS
        ),
    )


def hidden_folders() -> tuple[Path, ...]:
    """Return the folders that the node does not see as the host does; the cache must lie elsewhere."""
    return (Path("/run"), Path("/var/lib"), Path("/var/log"))


def components(
    state: State, name: str, addresses: Addresses, binaries: Mapping[str, Path], sweep: tuple[str, ...]
) -> tuple[Component, ...]:
    """Return the node's components.

    Args:
        state: the cluster's folder.
        name: of the node.
        addresses: of the cluster.
        binaries: where each program lies.
        sweep: the command that removes containers of an earlier life from the image store.
    """
    return (
        Component("containerd-sweep", sweep, Probe("exit")),
        Component(
            "containerd",
            (str(binaries["containerd"]), f"--config={state.config}/containerd.toml"),
            Probe("socket", CONTAINERD_SOCKET),
            needs=("containerd-sweep",),
        ),
        Component(
            "kubelet",
            (
                str(binaries["kubelet"]),
                f"--config={state.config}/kubelet.yaml",
                f"--kubeconfig={state.config}/kubelet.kubeconfig",
                f"--hostname-override={name}",
                f"--node-ip={addresses.node}",
            ),
            Probe("tcp", "127.0.0.1:10248"),
            needs=("containerd", "kube-apiserver"),
        ),
        Component(
            "kube-proxy",
            (
                str(binaries["kube-proxy"]),
                f"--kubeconfig={state.config}/kube-proxy.kubeconfig",
                f"--hostname-override={name}",
                "--proxy-mode=nftables",
                f"--cluster-cidr={addresses.pods}",
                # The connection table's limits belong to the host.
                "--conntrack-max-per-core=0",
                "--conntrack-tcp-timeout-established=0",
                "--conntrack-tcp-timeout-close-wait=0",
            ),
            Probe("tcp", "127.0.0.1:10249"),
            needs=("kube-apiserver",),
        ),
    )


def containerd_config(state: State, store: Path, cni_plugins: Path) -> str:
    """Return the configuration of containerd 2."""
    return f"""\
version = 3
root = {_toml(store)}
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins.'io.containerd.internal.v1.opt']
  path = "/run/containerd/opt"

[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE_IMAGE}"

[plugins.'io.containerd.cri.v1.runtime']
  # CAP_SYS_RESOURCE is missing in some sandboxes.
  restrict_oom_score_adj = true
  # A profile would be loaded into the host's kernel and stay there.
  disable_apparmor = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [{_toml(cni_plugins)}]
  conf_dir = {_toml(state.config / "cni")}

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
"""


def sweep_config(store: Path) -> str:
    """Return the configuration of a containerd that only opens its store."""
    return f"""\
version = 3
root = {_toml(store)}
state = "/run/containerd-sweep"
disabled_plugins = [
  "io.containerd.grpc.v1.cri",
  "io.containerd.cri.v1.images",
  "io.containerd.cri.v1.runtime",
  "io.containerd.podsandbox.controller.v1.podsandbox",
]

[grpc]
  address = "/run/containerd-sweep/containerd.sock"

[plugins.'io.containerd.internal.v1.opt']
  path = "/run/containerd-sweep/opt"

[plugins.'io.containerd.nri.v1.nri']
  disable = true
"""


def cni_config(addresses: Addresses) -> dict[str, object]:
    """Return the pod network: a routed pair of interfaces per pod, no bridge.

    With a bridge, answers between two pods would pass by the node's address translation unless
    the host loads the kernel module br_netfilter; routed, they never do.
    """
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni",
                    "ranges": [[{"subnet": str(addresses.pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet_config(state: State, name: str, addresses: Addresses) -> dict[str, object]:
    """Return the kubelet's configuration; it works on cgroup v1 and v2."""
    pki = state.pki
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{pki}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{pki}/kubelet-server.crt",
        "tlsPrivateKeyFile": f"{pki}/kubelet-server.key",
        "clusterDNS": [str(addresses.dns)],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{state.config}/resolv.conf",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_name(name)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "featureGates": {"KubeletInUserNamespace": True},
        "localStorageCapacityIsolation": False,
        "enforceNodeAllocatable": [],
        # The disk is the developer's: how full it is must not evict pods or remove images.
        "evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    }


def _toml(path: Path) -> str:
    return json.dumps(str(path))
