"""Bundles for the models that `tiny_model` makes."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from zerolayer_worker.anchors.bundle import Bundle, norm_shapes, write_bundle
from zerolayer_worker.anchors.metadata import BundleMetadata
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.digest import folder_digest

CREATED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ANY_DIGEST = "sha256:" + "0" * 64


def tiny_metadata(base_digest: str = ANY_DIGEST, **overrides: Any) -> BundleMetadata:
    """Metadata of a bundle called `facts`, version `v1`."""
    fields: dict[str, Any] = {
        "name": "facts",
        "version": "v1",
        "base_model_digest": base_digest,
        "created": CREATED,
        "dtype": "bfloat16",
        "training_data_digest": ANY_DIGEST,
        "evaluation": {"hit_rate": 0.5},
    }
    return BundleMetadata.model_validate(fields | overrides)


def random_gains(folder: Path, seed: int = 0, spread: float = 0.5) -> dict[str, torch.Tensor]:
    """Values for every norm parameter of the model in `folder`, around 1."""
    generator = torch.Generator().manual_seed(seed)
    shapes = norm_shapes(read_config(folder))
    return {name: 1 + spread * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def make_tiny_bundle(path: Path, folder: Path, *, seed: int = 0, **overrides: Any) -> Bundle:
    """Writes a bundle for the model in `folder`; `overrides` are fields of its metadata."""
    metadata = tiny_metadata(**{"base_digest": folder_digest(folder)} | overrides)
    return write_bundle(path, random_gains(folder, seed), metadata)
