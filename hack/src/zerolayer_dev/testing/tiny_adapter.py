"""LoRA adapters for the models that `tiny_model` makes, as the peft library writes them."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

PREFIX = "base_model.model."
RANK = 4
TARGETS = {
    "model.layers.0.self_attn.q_proj": (64, 64),
    "model.layers.1.self_attn.v_proj": (32, 64),
    "model.layers.1.mlp.down_proj": (64, 96),
}
"""Modules that the adapter changes, with rows and columns of their weights."""

CONFIG: dict[str, Any] = {
    "alpha_pattern": {},
    "base_model_name_or_path": "tiny",
    "bias": "none",
    "fan_in_fan_out": False,
    "inference_mode": True,
    "init_lora_weights": True,
    "layer_replication": None,
    "lora_alpha": 8,
    "lora_dropout": 0.1,
    "modules_to_save": None,
    "peft_type": "LORA",
    "r": RANK,
    "rank_pattern": {},
    "target_modules": ["q_proj", "v_proj", "down_proj"],
    "use_dora": False,
    "use_rslora": False,
}


def tiny_factors(seed: int = 0) -> dict[str, torch.Tensor]:
    """Both factors of every target, by their keys in the file."""
    generator = torch.Generator().manual_seed(seed)
    factors: dict[str, torch.Tensor] = {}
    for module, (rows, columns) in TARGETS.items():
        shapes = {"A": (RANK, columns), "B": (rows, RANK)}
        for side, shape in shapes.items():
            factors[f"{PREFIX}{module}.lora_{side}.weight"] = 0.2 * torch.randn(shape, generator=generator)
    return factors


def make_tiny_adapter(folder: Path, tensors: dict[str, torch.Tensor] | None = None, **overrides: Any) -> Path:
    """Writes an adapter of the tiny factors and `tensors`; `overrides` are keys of its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG | overrides))
    save_file(tiny_factors() | (tensors or {}), folder / "adapter_model.safetensors", {"format": "pt"})
    return folder
