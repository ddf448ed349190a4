"""Tests of the worker on a GPU: `make test-gpu`. Where torch sees none they are skipped."""

from pathlib import Path

import pytest
import torch

from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.testing.preparation import prepare
from zerolayer_dev.testing.tiny_model import make_tiny_model

# Sharper than the default, and wide enough for products to have more than one kernel to choose from.
SHAPE = {
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "eos_token_id": 100_000,
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Makes the model's folder where it is missing and will be used."""
    if torch.cuda.is_available():
        prepare(session, "demo_model", model_dir)


@pytest.fixture(scope="session")
def demo_model() -> Path:
    return model_dir()


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("random"), **SHAPE)
