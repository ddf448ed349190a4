"""The demo's model, and a real worker process that serves it on the loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.testing.preparation import prepare
from zerolayer_dev.testing.worker_process import WorkerProcess, worker_of


def pytest_collection_finish(session: pytest.Session) -> None:
    """Makes the model's folder where it is missing."""
    prepare(session, "demo_model", model_dir)


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The folder of SmolLM2-135M-Instruct, made if the cache lacks it."""
    return model_dir()


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
