import shlex
from pathlib import Path

import pytest

from zerolayer_dev.cluster import sweep

CONTAINERD = """#!/usr/bin/env python3
import signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind({address!r})
server.listen()
signal.pause()
"""
CTR = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
*"containers list") printf 'CONTAINER IMAGE RUNTIME\\nold x y\\n';;
*"sandboxes list") echo 'SANDBOX CREATED';;
*"images list") printf 'REF TYPE DIGEST\\nsha256:c1 t m1\\nsha256:c2 t m2\\nz/worker:dev t m2\\n';;
*"leases create") echo lease-1;;
*"containers remove"*) touch {log}.gone;;
esac
"""


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of what is asked of a containerd that holds one container and one image that was replaced."""
    log = tmp_path / "log"
    address = str(tmp_path / "socket")
    monkeypatch.setattr(sweep, "_SOCKET", address)
    text = CTR.format(log=shlex.quote(str(log)))
    # What was removed is not listed again.
    text = text.replace("printf 'CONTAINER", f"[ -e {log}.gone ] || printf 'CONTAINER")
    programs = [
        program(tmp_path / "containerd", CONTAINERD.format(address=address)),
        program(tmp_path / "ctr", text),
    ]
    monkeypatch.setattr("sys.argv", ["sweep", *programs, "config.toml"])
    return log


def test_garbage_is_gone_before_the_node_starts(asked: Path) -> None:
    """Layers found by an import must not be taken away during it."""
    sweep.main()

    done = [line.partition("--namespace=k8s.io ")[2] for line in asked.read_text().splitlines()]
    changes = [line for line in done if not line.endswith("list")]
    assert changes == [
        "containers remove old",
        "images remove sha256:c1",
        "leases create",
        "leases delete --sync lease-1",
    ]
