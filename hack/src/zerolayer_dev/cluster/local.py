"""A Kubernetes of our own on this machine: one process, namespaces of its own, nothing left behind."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster import binaries, node, teardown
from zerolayer_dev.cluster.api import ClusterError
from zerolayer_dev.cluster.clients import Clients
from zerolayer_dev.cluster.commands import output
from zerolayer_dev.cluster.control import Control
from zerolayer_dev.cluster.images import archived_images, parse_image_list
from zerolayer_dev.cluster.locks import held
from zerolayer_dev.cluster.supervisor import log_tail
from zerolayer_dev.images.archive import copy_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zerolayer_dev.cluster.layout import Addresses
    from zerolayer_dev.cluster.record import Record

_START_TIMEOUT_S = 120.0


class LocalCluster:
    """A running local cluster.

    Nothing in it enforces NetworkPolicy: policies are accepted and stored, as on any
    cluster whose pod network has no policy engine.

    Args:
        record: of the running cluster.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.state = record.state
        self.addresses: Addresses = record.addresses
        self.control = Control(self.state.control)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.record.name

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.state.kubeconfig

    @property
    def audit_log(self) -> Path:
        """Audit log: who did what, with user agent, at level Metadata."""
        return self.state.audit_log

    @cached_property
    def clients(self) -> Clients:
        """The clients kubectl and helm for this cluster."""
        return Clients(self.kubeconfig)

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl; see `Cluster.kubectl`."""
        return self.clients.kubectl(*arguments, stdin=stdin, timeout_s=timeout_s)

    def helm(self, *arguments: str, stdin: str | None = None, timeout_s: float = 300) -> str:
        """Run helm; see `Cluster.helm`."""
        return self.clients.helm(*arguments, stdin=stdin, timeout_s=timeout_s)

    def exec_in_node(self, command: Sequence[str], timeout_s: float = 60) -> str:
        """Run a command in the cluster's namespaces; see `Cluster.exec_in_node`.

        The node's `ctr` is found by its name, as on any other node.
        """
        entered = [
            "nsenter",
            f"--target={self.record.init.pid}",
            "--net",
            "--pid",
            "--mount",
            "--uts",
            "--ipc",
        ]
        path = os.pathsep.join((str(binaries.path_of("ctr").parent), os.environ["PATH"]))
        return output(
            [*entered, "--", *command], environment={**os.environ, "PATH": path}, timeout_s=timeout_s
        )

    def load_image(self, archive: Path) -> bool:
        """Import what the node lacks of an OCI archive; see `Cluster.load_image`."""
        present = parse_image_list(self._ctr("images", "list"))
        lacking = [image for image in archived_images(archive) if present.get(image.name) != image.digest]
        for image in lacking:
            self._import(archive, image.repository)
            self._make_known(image.name)
        return bool(lacking)

    def _import(self, archive: Path, repository: str) -> None:
        # containerd would write every layer again, also those it has: new code would carry old gigabytes.
        store = Path(str(self.record.store))
        with tempfile.NamedTemporaryFile(dir=store, suffix=".tar") as lacking:
            copy_missing(archive, store / node.BLOBS, lacking)
            lacking.flush()
            self._ctr(
                "images", "import", "--local", f"--base-name={repository}", lacking.name, timeout_s=900
            )  # fmt: skip

    def _make_known(self, name: str) -> None:
        # The kubelet mounts an image volume by the image's ID. A name that an older image had keeps the
        # label by which containerd takes the ID for known; without it, the new ID is entered and labelled.
        self._ctr("images", "label", name, "io.cri-containerd.image=")

    def stop_apiserver(self) -> None:
        """Kill the API server and keep it away until `start_apiserver`."""
        self.control.stop("kube-apiserver")

    def start_apiserver(self) -> None:
        """Start the stopped API server and wait until it is ready."""
        self.control.start("kube-apiserver")

    def pause(self, component: str) -> None:
        """Freeze a component, as a machine that hangs does."""
        self.control.signal(component, signal.SIGSTOP)

    def resume(self, component: str) -> None:
        """Let a frozen component run on."""
        self.control.signal(component, signal.SIGCONT)

    def kill(self, component: str) -> None:
        """Kill a component, which is then started again."""
        self.control.signal(component, signal.SIGKILL)

    def down(self) -> None:
        """End the cluster and remove everything but its image store."""
        with held(teardown.lock()):
            teardown.remove(self.state)

    def wait_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Wait until every component is ready.

        Raises:
            ClusterError: the cluster ended, or took too long; the message says why.
        """
        deadline = time.monotonic() + timeout_s
        waiting: list[str] = ["supervisor"]
        while waiting:
            if not self.record.alive:
                raise ClusterError(
                    f"cluster {self.name} ended:{log_tail(self.state.logs / 'supervisor.log')}"
                )
            if time.monotonic() > deadline:
                tails = "".join(f"\n  {item}:{log_tail(self.state.logs / f'{item}.log')}" for item in waiting)
                raise ClusterError(f"cluster {self.name} not ready within {timeout_s:.0f} s:{tails}")
            waiting = self._unready()
            time.sleep(0.05 if waiting else 0)

    def _unready(self) -> list[str]:
        try:
            return [name for name, item in self.control.status().items() if not item["ready"]]
        except OSError:
            return ["supervisor"]  # it does not listen yet

    def _ctr(self, *arguments: str, timeout_s: float = 60) -> str:
        program = str(binaries.path_of("ctr"))
        return self.exec_in_node(
            [program, f"--address={node.CONTAINERD_SOCKET}", "--namespace=k8s.io", *arguments], timeout_s
        )
