"""A real worker process that serves a model on the loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from zerolayer_dev.models.builtin import NAME
from zerolayer_dev.testing.ports import free_port
from zerolayer_dev.testing.waiting import wait_for


@dataclass(frozen=True)
class WorkerProcess:
    """A worker that is ready."""

    url: str
    ops_url: str
    model: str
    log: Path
    pid: int

    def metrics(self) -> str:
        """What `/metrics` says."""
        return httpx.get(f"{self.ops_url}/metrics", timeout=10).text


@contextmanager
def worker_of(model: Path, log: Path, *flags: str, max_queue: int) -> Iterator[WorkerProcess]:
    """A worker process under the demo model's name, while the context lasts; `flags` come on top.

    Raises:
        RuntimeError: it ended by itself, or with an error; its log is in the message.
    """
    port, ops_port = free_port(), free_port()
    command = [
        str(Path(sys.executable).with_name("zerolayer-worker")),
        *("serve", "--model-path", str(model), "--model-name", NAME),
        *("--host", "127.0.0.1", "--port", str(port), "--ops-port", str(ops_port)),
        *("--max-batch-size", "8", "--max-queue", str(max_queue), "--drain-seconds", "30"),
        *flags,
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ZEROLAYER_")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        ops_url = f"http://127.0.0.1:{ops_port}"
        wait_for(lambda: _ready(process, ops_url, log), what="the worker is ready", seconds=240)
        yield WorkerProcess(f"http://127.0.0.1:{port}", ops_url, NAME, log, process.pid)
        process.terminate()
        if process.wait(60) != 0:
            raise RuntimeError(log.read_text())
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _ready(process: "subprocess.Popen[bytes]", ops_url: str, log: Path) -> bool:
    if process.poll() is not None:
        raise RuntimeError(log.read_text())
    try:
        return httpx.get(f"{ops_url}/readyz", timeout=5).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
