import dataclasses
from pathlib import Path

import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.rope import apply_rope, rope_tables
from zerolayer_worker.models.rope_config import Llama3Scaling, RopeScaling


def config(folder: Path, scaling: RopeScaling | None = None) -> ModelConfig:
    return dataclasses.replace(read_config(make_tiny_model(folder)), rope_scaling=scaling)


def rotated(tables: tuple[torch.Tensor, torch.Tensor], vector: torch.Tensor, position: int) -> torch.Tensor:
    cos, sin = tables
    return apply_rope(vector[None, None], cos[position][None, None], sin[position][None, None])[0, 0]


def test_products_depend_on_the_distance_alone(tmp_path: Path) -> None:
    tables = rope_tables(config(tmp_path), 64, torch.device("cpu"))
    q, k = torch.randn(16), torch.randn(16)
    near = rotated(tables, q, 7) @ rotated(tables, k, 3)
    far = rotated(tables, q, 57) @ rotated(tables, k, 53)
    torch.testing.assert_close(near, far)
    assert not torch.isclose(near, rotated(tables, q, 8) @ rotated(tables, k, 3))


def test_position_zero_changes_nothing(tmp_path: Path) -> None:
    vector = torch.randn(16)
    assert torch.equal(rotated(rope_tables(config(tmp_path), 4, torch.device("cpu")), vector, 0), vector)


def test_llama3_keeps_short_waves_and_stretches_long_ones(tmp_path: Path) -> None:
    scaling = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_positions=64)
    plain, _ = rope_tables(config(tmp_path), 9, torch.device("cpu"))
    stretched, _ = rope_tables(config(tmp_path, scaling), 9, torch.device("cpu"))
    torch.testing.assert_close(stretched[8, 0], plain[8, 0])
    torch.testing.assert_close(stretched[8, 7], plain[1, 7])
