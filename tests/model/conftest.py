"""The demo's model, and a real worker process that serves it on the loopback."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.testing.preparation import prepare
from zerolayer_dev.testing.waiting import wait_for

MODEL = "smollm2-135m-instruct"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Makes the model's folder where it is missing."""
    prepare(session, "demo_model", model_dir)


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The folder of SmolLM2-135M-Instruct, made if the cache lacks it."""
    return model_dir()


@dataclass(frozen=True)
class WorkerProcess:
    """A worker that is ready."""

    url: str
    ops_url: str
    model: str
    log: Path
    pid: int

    def metrics(self) -> str:
        return httpx.get(f"{self.ops_url}/metrics", timeout=10).text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def worker_process(demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """`zerolayer-worker serve` with the demo's model; ended by SIGTERM, which has to succeed."""
    with worker_of(demo_model, tmp_path_factory.mktemp("worker") / "log", max_queue=64) as worker:
        yield worker


@pytest.fixture(scope="module")
def short_queue(demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """The same with few places for requests that wait, which are soon taken."""
    with worker_of(demo_model, tmp_path_factory.mktemp("short-queue") / "log", max_queue=16) as worker:
        yield worker


@pytest.fixture(scope="module")
def replicas(
    worker_process: WorkerProcess, demo_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WorkerProcess, WorkerProcess]]:
    """Two workers. The second has so few pages that prompts' beginnings are forgotten now and then."""
    log = tmp_path_factory.mktemp("replica") / "log"
    with worker_of(demo_model, log, "--kv-cache-tokens", "3072", max_queue=64) as second:
        yield worker_process, second


@contextmanager
def worker_of(demo_model: Path, log: Path, *flags: str, max_queue: int) -> Iterator[WorkerProcess]:
    """A worker process, while the context lasts; `flags` come on top."""
    port, ops_port = _free_port(), _free_port()
    command = [
        str(Path(sys.executable).with_name("zerolayer-worker")),
        *("serve", "--model-path", str(demo_model), "--model-name", MODEL),
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
        yield WorkerProcess(f"http://127.0.0.1:{port}", ops_url, MODEL, log, process.pid)
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _ready(process: "subprocess.Popen[bytes]", ops_url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return httpx.get(f"{ops_url}/readyz", timeout=5).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
