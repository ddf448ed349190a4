"""One compute thread and no deadlines: the products are small, and the machine may be busy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from zerolayer_dev.testing.small_products import one_thread
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine

__all__ = ["one_thread"]


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that answers at length: its end token is one it never chooses."""
    return make_tiny_model(tmp_path_factory.mktemp("tiny"), eos_token_id=100_000)


@pytest.fixture(scope="session")
def tiny_config(tiny_folder: Path) -> EngineConfig:
    return EngineConfig(
        tiny_folder,
        "tiny",
        # The same on every CPU; `auto` is another type where the CPU multiplies that one.
        dtype="float32",
        max_batch_size=4,
        max_queue=4,
        threads=1,
        prefill_chunk=16,
        warmup_max_tokens=2,
        warmup_settle_ratio=1000.0,
        # A request that the idle engine asks itself again would hold a page.
        consistency_share=0.0,
    )


@pytest.fixture(scope="session")
def shared_engine(tiny_config: EngineConfig) -> Iterator[TorchEngine]:
    engine = load_engine(tiny_config, lambda _stage: None)
    yield engine
    engine.close()


@pytest.fixture
def engine(shared_engine: TorchEngine) -> Iterator[TorchEngine]:
    """The shared engine, which has to be empty again after every test."""
    yield shared_engine
    stats = shared_engine.stats()
    assert (stats.running, stats.waiting, stats.idle, stats.kv_pages_used) == (0, 0, True, 0)
