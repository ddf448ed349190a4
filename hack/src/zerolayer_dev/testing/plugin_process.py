"""`kubectl zerolayer` as users run it: a file on the PATH that kubectl finds by its name."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.cluster.binaries import CLIENTS, ensure
from zerolayer_dev.plugin import write

Said = subprocess.CompletedProcess[str]


class Plugin:
    """The plugin, for one cluster and namespace.

    Args:
        cluster: The cluster.
        namespace: Where pools are looked for.
        folder: For the program.
    """

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self._kubectl = ensure(CLIENTS)["kubectl"]
        self._namespace = namespace
        path = [str(write(folder).parent), str(self._kubectl.parent), str(Path(sys.executable).parent)]
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
        }

    def __call__(self, *arguments: str, seconds: float = 60) -> Said:
        """Runs a command to its end."""
        return subprocess.run(
            self._command(arguments),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command that goes on by itself; its output can be read line by line."""
        return subprocess.Popen(
            self._command(arguments),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def on_terminal(self, *arguments: str, typed: str = "", seconds: float = 60) -> Said:
        """Runs a command on a terminal, at which a person types."""
        ours, theirs = pty.openpty()
        try:
            os.write(ours, typed.encode())
            return subprocess.run(
                self._command(arguments),
                env=self._environment,
                stdin=theirs,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        finally:
            os.close(ours)
            os.close(theirs)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(self._kubectl), "zerolayer", *arguments, f"--namespace={self._namespace}"]
