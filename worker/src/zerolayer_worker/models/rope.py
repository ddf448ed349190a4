"""Rotary position embedding as two tables, so that applying it is three operations."""

import math

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig, RopeScaling


def rope_tables(config: ModelConfig, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosine and signed sine for positions 0 … length-1.

    The sine's first half is negated, which turns the usual rotate-half into a plain roll.

    Returns:
        Two fp32 tensors of shape `[length, head_dim]`.
    """
    half = torch.arange(0, config.head_dim, 2, dtype=torch.int64, device=device).float()
    frequencies = 1.0 / (config.rope_theta ** (half / config.head_dim))
    if config.rope_scaling is not None:
        frequencies = _stretch(frequencies, config.rope_scaling)
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def apply_rope(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates `heads` `[rows, heads, head_dim]` by tables `[rows, 1, head_dim]`."""
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, -1), sin)


def _stretch(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Long wavelengths are stretched by the factor, short ones kept, those between interpolated."""
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_max_positions / wavelengths
    span = scaling.high_freq_factor - scaling.low_freq_factor
    kept = ((turns - scaling.low_freq_factor) / span).clamp(0.0, 1.0)
    return frequencies * kept + frequencies / scaling.factor * (1 - kept)
