"""Removes containers of an earlier life from containerd's store, before the node uses it again.

Images outlive a cluster, so that the next one need not unpack them. Containers
do not: their processes ended with the cluster, however it ended. Run inside the
namespaces, with containerd's container runtime interface off, which would
otherwise take them up again.
"""

from __future__ import annotations

import subprocess
import sys
import time

from zerolayer_dev.cluster.plan import Probe
from zerolayer_dev.cluster.probes import is_ready

_SOCKET = "/run/containerd-sweep/containerd.sock"
_START_TIMEOUT_S = 60.0


def main() -> None:
    """Sweep; the arguments are the programs containerd and ctr, and the configuration."""
    containerd, ctr, config = sys.argv[1:]
    with subprocess.Popen([containerd, f"--config={config}"]) as daemon:
        try:
            _await_socket(daemon)
            for kind in ("containers", "sandboxes"):
                _remove_all(ctr, kind)
        finally:
            daemon.terminate()


def _await_socket(daemon: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not is_ready(Probe("socket", _SOCKET)):
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("containerd did not start")
        time.sleep(0.02)


def _remove_all(ctr: str, kind: str) -> None:
    command = [ctr, f"--address={_SOCKET}", "--namespace=k8s.io", kind]
    listed = subprocess.run([*command, "list"], check=True, capture_output=True, text=True)
    if names := [line.split()[0] for line in listed.stdout.splitlines()[1:]]:
        subprocess.run([*command, "remove", *names], check=True)
        print(f"removed {len(names)} {kind}")


if __name__ == "__main__":
    main()
