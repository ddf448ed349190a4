"""A worker as users start it, in a process of its own, and what the system accounts to it."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from zerolayer_bench.worker.machine import high_water_mib
from zerolayer_dev.models.builtin import NAME, model_dir
from zerolayer_dev.testing.waiting import wait_for

PATHS: Final = {"fused": "auto", "logits": "naive"}
"""The sampler's name for the worker, by the path it stands for."""
SLOTS: Final = 16
_BUSY = re.compile(r"^zero_layer_busy_share_seconds_total(?:\{.*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Worker:
    """One that is ready."""

    url: str
    ops_url: str
    pid: int

    def forget_peak(self) -> None:
        """Lets the peak of its resident set begin anew."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="ascii")

    def peak_mib(self) -> float:
        """The largest resident set since then, in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return high_water_mib(status.splitlines())

    def processor_seconds(self) -> float:
        """What it used so far, with all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def busy_seconds(self, client: httpx.AsyncClient) -> float:
        """Its own account of seconds times the share of its slots that was busy."""
        found = _BUSY.search((await client.get(f"{self.ops_url}/metrics")).text)
        if found is None:
            raise RuntimeError("the worker's metrics lack zero_layer_busy_share_seconds_total")
        return float(found[1])


@contextmanager
def both() -> Iterator[dict[str, Worker]]:
    """A worker for each path, at the same time; whichever has no requests needs no processor."""
    with ExitStack() as stack:
        yield {path: stack.enter_context(_worker(sampler)) for path, sampler in PATHS.items()}


@contextmanager
def _worker(sampler: str) -> Iterator[Worker]:
    port, ops_port = _free_port(), _free_port()
    command = [
        str(Path(sys.executable).with_name("zerolayer-worker")),
        *("serve", "--model-path", str(model_dir()), "--model-name", NAME, "--sampler", sampler),
        *("--host", "127.0.0.1", "--port", str(port), "--ops-port", str(ops_port)),
        *("--max-batch-size", str(SLOTS), "--max-queue", "512", "--max-model-len", "1024"),
        *("--consistency-share", "0", "--log-level", "warning"),
    ]
    process = subprocess.Popen(command)
    ops_url = f"http://127.0.0.1:{ops_port}"
    try:
        wait_for(lambda: _ready(process, ops_url), what="the worker is ready", seconds=120)
        yield Worker(f"http://127.0.0.1:{port}", ops_url, process.pid)
        process.terminate()
        process.wait(60)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _ready(process: "subprocess.Popen[bytes]", ops_url: str) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the worker ended with status {process.returncode}")
    try:
        return httpx.get(f"{ops_url}/readyz", timeout=5, trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
