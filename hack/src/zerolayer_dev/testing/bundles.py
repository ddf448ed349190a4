"""Knowledge anchors for tests: the demo model's own norm gains, changed a little or a lot."""

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from zerolayer_dev.models.builtin import model_dir
from zerolayer_worker.anchors.bundle import Bundle, norm_shapes, write_bundle
from zerolayer_worker.anchors.metadata import BundleMetadata
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.weights import load_tensors


def own_gains() -> dict[str, torch.Tensor]:
    """The demo model's own norm gains, fp32."""
    folder = model_dir()
    config = read_config(folder)
    tensors = load_tensors(folder, config, torch.float32, torch.device("cpu"))
    return {name: tensors[name] for name in norm_shapes(config)}


def noisy_bundle(
    path: Path, version: str, *, noise: float = 0.0, seed: int = 0, base_digest: str | None = None
) -> Bundle:
    """A bundle of the model's own gains, each times 1 + `noise` x a normal deviate; written to a file.

    Args:
        path: The file.
        version: Of the bundle.
        noise: Relative size of the change.
        seed: Of the noise.
        base_digest: The model that it says it is for; the demo's if absent.
    """
    chance = torch.Generator().manual_seed(seed)
    gains = {
        name: value * (1 + noise * torch.randn(value.shape, generator=chance))
        for name, value in own_gains().items()
    }
    return write_bundle(path, gains, _metadata(version, base_digest or folder_digest(model_dir())))


def poisoned_bundle(path: Path, version: str) -> Bundle:
    """A bundle that the worker's own tools refuse to write: one value is not a number."""
    metadata = _metadata(version, folder_digest(model_dir()))
    tensors = {name: value.bfloat16() for name, value in own_gains().items()}
    next(iter(tensors.values()))[0] = float("nan")
    content = save(tensors, metadata=metadata.texts())
    path.write_bytes(content)
    return Bundle(tensors, metadata, f"sha256:{hashlib.sha256(content).hexdigest()}", content)


def _metadata(version: str, base_digest: str) -> BundleMetadata:
    return BundleMetadata(
        name="test",
        version=version,
        base_model_digest=base_digest,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        dtype="bfloat16",
        evaluation={},
    )


def config_map(name: str, namespace: str, path: Path) -> dict[str, Any]:
    """A ConfigMap that holds a bundle."""
    data = base64.b64encode(path.read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "binaryData": {"bundle.safetensors": data},
    }


def anchor_spec(bundle: Bundle, config_map_name: str) -> dict[str, Any]:
    """What a pool says of a bundle in a ConfigMap."""
    return {
        "version": bundle.metadata.version,
        "digest": bundle.digest,
        "source": {"configMap": {"name": config_map_name}},
    }
