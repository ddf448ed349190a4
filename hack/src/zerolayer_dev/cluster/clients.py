"""kubectl and helm against one kubeconfig, sharing no state with the user's own."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from zerolayer_dev.cluster import binaries
from zerolayer_dev.cluster.commands import output
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from pathlib import Path


class Clients:
    """The two command-line clients, bound to a kubeconfig.

    Args:
        kubeconfig: of the cluster.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    @cached_property
    def programs(self) -> dict[str, Path]:
        """Where `kubectl` and `helm` lie."""
        return binaries.ensure(binaries.CLIENTS)

    @property
    def environment(self) -> dict[str, str]:
        """The environment the clients run in."""
        helm = cache_dir() / "helm"
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "HELM_CACHE_HOME": str(helm / "cache"),
            "HELM_CONFIG_HOME": str(helm / "config"),
            "HELM_DATA_HOME": str(helm / "data"),
        }

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl; see `Cluster.kubectl`."""
        return self._run("kubectl", arguments, stdin, timeout_s)

    def helm(self, *arguments: str, stdin: str | None = None, timeout_s: float = 300) -> str:
        """Run helm; see `Cluster.helm`."""
        return self._run("helm", arguments, stdin, timeout_s)

    def _run(self, program: str, arguments: tuple[str, ...], stdin: str | None, timeout_s: float) -> str:
        command = [str(self.programs[program]), *arguments]
        return output(command, environment=self.environment, stdin=stdin, timeout_s=timeout_s)
