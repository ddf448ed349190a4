"""Removes what an earlier life left in containerd's store, before the node uses it again.

Images outlive a cluster, so that the next one need not unpack them; those that
newer builds have replaced go. Containers do not: their processes ended with the
cluster, however it ended. Run inside the namespaces, with containerd's container
runtime interface off, which would otherwise take them up again.
"""

from __future__ import annotations

import subprocess
import sys
import time

from zerolayer_dev.cluster.images import parse_image_list, replaced_images
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
            _remove(ctr, "containers", _names(ctr, "containers"))
            # Forced: whoever could stop a sandbox is off, and there is nothing left to stop.
            _remove(ctr, "sandboxes", _names(ctr, "sandboxes"), "--force")
            _remove(ctr, "images", replaced_images(parse_image_list(_list(ctr, "images"))))
            _collect_garbage(ctr)
            if left := [*_names(ctr, "containers"), *_names(ctr, "sandboxes")]:
                raise SystemExit(f"could not remove {left}")
        finally:
            daemon.terminate()


def _await_socket(daemon: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not is_ready(Probe("socket", _SOCKET)):
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("containerd did not start")
        time.sleep(0.02)


def _list(ctr: str, kind: str) -> str:
    command = [*_command(ctr, kind), "list"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _names(ctr: str, kind: str) -> list[str]:
    return [line.split()[0] for line in _list(ctr, kind).splitlines()[1:]]


def _remove(ctr: str, kind: str, names: list[str], *options: str) -> None:
    if names:
        subprocess.run([*_command(ctr, kind), "remove", *options, *names], check=True)
        print(f"removed {len(names)} {kind}", flush=True)


def _collect_garbage(ctr: str) -> None:
    """Wait until what nothing refers to is gone; deleting a lease is what can be asked to wait for that.

    Left to its own time, containerd would take layers away that the next import has just found there.
    """
    lease = subprocess.run(
        [*_command(ctr, "leases"), "create"], check=True, capture_output=True, text=True
    ).stdout.strip()
    subprocess.run([*_command(ctr, "leases"), "delete", "--sync", lease], check=True)


def _command(ctr: str, kind: str) -> list[str]:
    return [ctr, f"--address={_SOCKET}", "--namespace=k8s.io", kind]


if __name__ == "__main__":
    main()
