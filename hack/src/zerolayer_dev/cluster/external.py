"""Clusters that others run: kind's, and whichever the kubeconfig points at."""

from __future__ import annotations

import os
import shutil
from functools import cached_property
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.api import ClusterError, UnsupportedError
from zerolayer_dev.cluster.clients import Clients
from zerolayer_dev.cluster.commands import output
from zerolayer_dev.cluster.layout import check_name
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ALLOW_CONTEXT = "ZEROLAYER_ALLOW_CONTEXT"


class _ExternalCluster:
    """What both kinds share.

    Args:
        name: of the cluster.
        kubeconfig: holds one context, this cluster's.
    """

    def __init__(self, name: str, kubeconfig: Path) -> None:
        self.name = name
        self.kubeconfig = kubeconfig

    @cached_property
    def clients(self) -> Clients:
        """The clients kubectl and helm for this cluster."""
        return Clients(self.kubeconfig)

    @property
    def audit_log(self) -> Path:
        """Not to be had."""
        raise UnsupportedError("the audit log of this cluster cannot be read from here; use CLUSTER=local")

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl; see `Cluster.kubectl`."""
        return self.clients.kubectl(*arguments, stdin=stdin, timeout_s=timeout_s)

    def helm(self, *arguments: str, stdin: str | None = None, timeout_s: float = 300) -> str:
        """Run helm; see `Cluster.helm`."""
        return self.clients.helm(*arguments, stdin=stdin, timeout_s=timeout_s)


class KindCluster(_ExternalCluster):
    """A cluster that kind runs in containers."""

    @classmethod
    def up(cls, name: str) -> KindCluster:
        """Create the kind cluster unless it exists."""
        _need("kind", "https://kind.sigs.k8s.io/docs/user/quick-start/#installation")
        kubeconfig = _kubeconfig_path("kind", check_name(name))
        if name not in output(kind_list()).split():
            output(kind_create(name, kubeconfig), timeout_s=600)
        return cls.find(name)

    @classmethod
    def find(cls, name: str) -> KindCluster:
        """Return the kind cluster of this name.

        Raises:
            ClusterError: there is none, or no kind.
        """
        _need("kind", "https://kind.sigs.k8s.io/docs/user/quick-start/#installation")
        if name not in output(kind_list()).split():
            raise ClusterError(f"kind has no cluster {name}; create it: CLUSTER=kind make cluster-up")
        kubeconfig = _kubeconfig_path("kind", name)
        _write_private(kubeconfig, output(kind_kubeconfig(name)))
        return cls(name, kubeconfig)

    def load_image(self, archive: Path) -> bool:
        """Load an OCI archive into every node; kind itself skips what is there."""
        output(kind_load(self.name, archive), timeout_s=900)
        return True

    def exec_in_node(self, command: Sequence[str], timeout_s: float = 60) -> str:
        """Run a command in the control-plane container; see `Cluster.exec_in_node`."""
        engine = next((item for item in ("docker", "podman") if shutil.which(item)), None)
        if engine is None:
            raise UnsupportedError("neither docker nor podman is here to enter the node with")
        return output([engine, "exec", f"{self.name}-control-plane", *command], timeout_s=timeout_s)

    def down(self) -> None:
        """Delete the kind cluster."""
        output(kind_delete(self.name), timeout_s=300)
        self.kubeconfig.unlink(missing_ok=True)


class CurrentCluster(_ExternalCluster):
    """The cluster of the current kube context, which the user has to name on purpose.

    Images are never loaded: they have to be where its nodes can pull them.
    """

    @classmethod
    def use(cls) -> CurrentCluster:
        """Return the current context's cluster.

        Raises:
            ClusterError: there is no current context, or `ZEROLAYER_ALLOW_CONTEXT` does not name it.
        """
        _need("kubectl", "https://kubernetes.io/docs/tasks/tools/")
        context = output(["kubectl", "config", "current-context"]).strip()
        check_context(context, os.environ.get(ALLOW_CONTEXT))
        kubeconfig = _kubeconfig_path("current", "context")
        # A copy of this context alone: switching contexts meanwhile must not redirect a test.
        _write_private(kubeconfig, output(current_kubeconfig(context)))
        return cls(context, kubeconfig)

    def load_image(self, archive: Path) -> bool:
        """Load nothing; see the class."""
        print(f"{archive.name}: not loaded, CLUSTER=current pulls its images itself")
        return False

    def exec_in_node(self, command: Sequence[str], timeout_s: float = 60) -> str:
        """Not to be had."""
        raise UnsupportedError(
            f"cannot run {command[0]} in the node of CLUSTER=current within {timeout_s:.0f} s"
        )

    def down(self) -> None:
        """Refuse: the cluster is the user's."""
        raise UnsupportedError("CLUSTER=current is yours: it is not ended from here")


def check_context(context: str, allowed: str | None) -> None:
    """Check that the user meant this context.

    Raises:
        ClusterError: `allowed` is not exactly this context.
    """
    if context != allowed:
        raise ClusterError(
            f"the current kube context is {context}; to use that cluster, set {ALLOW_CONTEXT}={context}"
        )


def kind_list() -> list[str]:
    """Return the command that lists kind's clusters."""
    return ["kind", "get", "clusters", "--quiet"]


def kind_create(name: str, kubeconfig: Path) -> list[str]:
    """Return the command that creates a kind cluster and waits until it is ready."""
    return [
        "kind",
        "create",
        "cluster",
        f"--name={check_name(name)}",
        f"--kubeconfig={kubeconfig}",
        "--wait=300s",
    ]


def kind_kubeconfig(name: str) -> list[str]:
    """Return the command that prints a kind cluster's kubeconfig."""
    return ["kind", "get", "kubeconfig", f"--name={check_name(name)}"]


def kind_load(name: str, archive: Path) -> list[str]:
    """Return the command that loads an archive into a kind cluster."""
    return ["kind", "load", "image-archive", str(archive), f"--name={check_name(name)}"]


def kind_delete(name: str) -> list[str]:
    """Return the command that deletes a kind cluster."""
    return ["kind", "delete", "cluster", f"--name={check_name(name)}"]


def current_kubeconfig(context: str) -> list[str]:
    """Return the command that prints a kubeconfig of one context, credentials included."""
    return ["kubectl", "config", "view", "--minify", "--flatten", f"--context={context}"]


def _need(program: str, where: str) -> None:
    if shutil.which(program) is None:
        raise ClusterError(f"no {program} on the PATH; install it: {where}")


def _kubeconfig_path(kind: str, name: str) -> Path:
    folder = cache_dir() / "kubeconfigs"
    folder.mkdir(exist_ok=True)
    return folder / f"{kind}-{name}"


def _write_private(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)
