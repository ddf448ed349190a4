"""What tests, the demo and the command line need of a Kubernetes, whoever runs it.

`CLUSTER` chooses: `local` (the default) builds and starts one here, `kind` uses
kind, `current` uses the cluster that the kubeconfig points at.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from zerolayer_dev.cluster.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DEFAULT_NAME = "zerolayer"


class Cluster(Protocol):
    """A running Kubernetes."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of an administrator, whose only context is this cluster."""
        ...

    @property
    def audit_log(self) -> Path:
        """The API server's audit log: one JSON object per line.

        Raises:
            UnsupportedError: this kind of cluster keeps none that can be read from here.
        """
        ...

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl and return what it prints.

        Args:
            arguments: of kubectl.
            stdin: what it reads.
            timeout_s: seconds after which it is ended.

        Raises:
            CommandError: it failed; the message holds what it said.
        """
        ...

    def helm(self, *arguments: str, stdin: str | None = None, timeout_s: float = 300) -> str:
        """Run helm and return what it prints; arguments and errors as for `kubectl`."""
        ...

    def load_image(self, archive: Path) -> bool:
        """Make the image of an OCI archive available to pods with pull policy IfNotPresent.

        Returns:
            Whether it had to be loaded; False where the node has exactly this image.
        """
        ...

    def exec_in_node(self, command: Sequence[str], timeout_s: float = 60) -> str:
        """Run a command in the node's namespaces and return what it prints.

        Raises:
            CommandError: it failed.
            UnsupportedError: the node cannot be reached.
        """
        ...

    def down(self) -> None:
        """End the cluster."""
        ...


class UnsupportedError(RuntimeError):
    """This kind of cluster cannot do what was asked."""


class ClusterError(RuntimeError):
    """A cluster could not be started or found."""


def kind() -> str:
    """Return which kind of cluster `CLUSTER` chooses.

    Raises:
        ClusterError: it is none of `local`, `kind` and `current`.
    """
    chosen = os.environ.get("CLUSTER", "local")
    if chosen not in ("local", "kind", "current"):
        raise ClusterError(f"CLUSTER={chosen}: use local, kind or current")
    return chosen


def up(name: str = DEFAULT_NAME, size: Size | str = Size.NODE, *, tied: bool = False) -> Cluster:
    """Start a cluster, or return the one that runs under this name.

    Args:
        name: of the cluster.
        size: of a local cluster.
        tied: a local cluster that this call starts ends with this process, even if it is killed.

    Raises:
        MissingPrerequisitesError: the machine lacks something; the message says what to do.
        ClusterError: it did not start; the message holds the end of the log that says why.
    """
    from zerolayer_dev.cluster import external, launch  # noqa: PLC0415 - they import this module

    size = Size(size)
    match kind():
        case "kind":
            return external.KindCluster.up(name)
        case "current":
            return external.CurrentCluster.use()
        case _:
            return launch.up(name, size, tied=tied)


def find(name: str = DEFAULT_NAME) -> Cluster:
    """Return the running cluster of this name.

    Raises:
        ClusterError: there is none.
    """
    from zerolayer_dev.cluster import external, launch  # noqa: PLC0415 - they import this module

    match kind():
        case "kind":
            return external.KindCluster.find(name)
        case "current":
            return external.CurrentCluster.use()
        case _:
            return launch.find(name)


def down(name: str = DEFAULT_NAME) -> None:
    """End a cluster and remove what it left, also where it does not run any more.

    Raises:
        UnsupportedError: `CLUSTER=current`: that cluster is the user's.
    """
    from zerolayer_dev.cluster import external, launch  # noqa: PLC0415 - they import this module

    match kind():
        case "kind":
            external.KindCluster.find(name).down()
        case "current":
            external.CurrentCluster.use().down()
        case _:
            launch.down(name)
