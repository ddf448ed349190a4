"""Rotary position embedding as two tables, so that applying it is three operations."""

import math

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.rope_config import LinearScaling, Llama3Scaling, RopeScaling, YarnScaling

_LEAST_SPAN = 0.001
"""A ramp without length would divide by 0."""


def rope_tables(config: ModelConfig, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosine and signed sine for positions 0 … length-1.

    The sine's first half is negated, which turns the usual rotate-half into a plain roll.

    Returns:
        Two fp32 tensors of shape `[length, head_dim]`.
    """
    half = torch.arange(0, config.head_dim, 2, dtype=torch.int64, device=device).float()
    frequencies = 1.0 / (config.rope_theta ** (half / config.head_dim))
    scaling = config.rope_scaling
    if scaling is not None:
        frequencies = _scaled(frequencies, scaling, config.rope_theta)
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    cos, sin = angles.cos(), angles.sin()
    if isinstance(scaling, YarnScaling):
        cos, sin = cos * scaling.attention_factor, sin * scaling.attention_factor
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def apply_rope(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates `heads` `[rows, heads, head_dim]` by tables `[rows, 1, head_dim]`."""
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, -1), sin)


def _scaled(frequencies: Tensor, scaling: RopeScaling, theta: float) -> Tensor:
    match scaling:
        case LinearScaling():
            return frequencies / scaling.factor
        case Llama3Scaling():
            kept = _kept_by_llama3(frequencies, scaling)
        case YarnScaling():
            kept = _kept_by_yarn(frequencies, scaling, theta)
    return frequencies * kept + frequencies / scaling.factor * (1 - kept)


def _kept_by_llama3(frequencies: Tensor, scaling: Llama3Scaling) -> Tensor:
    """How much of each frequency is kept: all of short wavelengths, nothing of long ones."""
    turns = scaling.original_max_positions * frequencies / (2 * math.pi)
    span = scaling.high_freq_factor - scaling.low_freq_factor
    return ((turns - scaling.low_freq_factor) / span).clamp(0.0, 1.0)


def _kept_by_yarn(frequencies: Tensor, scaling: YarnScaling, theta: float) -> Tensor:
    """The same by YaRN: a ramp over the frequencies' numbers, between those that turn fast and slow."""
    count = frequencies.shape[0]

    def place(turns: float) -> float:
        """The (fractional) number of the frequency that turns so often within the original length."""
        return count * math.log(scaling.original_max_positions / (turns * 2 * math.pi)) / math.log(theta)

    low, high = place(scaling.beta_fast), place(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * count - 1)
    numbers = torch.arange(count, device=frequencies.device, dtype=torch.float32)
    return 1 - ((numbers - low) / max(high - low, _LEAST_SPAN)).clamp(0.0, 1.0)
