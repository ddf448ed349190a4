"""Counter-based Gumbel noise: a pure function of (seed, position, token id).

SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) read as a
counter-based generator: the token id is the counter, and (seed, position), hashed by the same function,
is the stream. No state exists, so neither batch nor tile nor the order of evaluation can matter.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from zerolayer_worker.common.transfer import on_device
from zerolayer_worker.sampling.provider import SamplingControls

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_UNIFORM_BITS = 40


def stream_key(seed: int, position: int) -> int:
    """The stream of one position of one answer, as a signed 64-bit number."""
    return _signed(_mix(_mix(seed & _MASK) + (position + 1) * _GOLDEN))


def gumbel(keys: Tensor, token_ids: Tensor) -> Tensor:
    """Standard Gumbel noise in fp32 for every (stream, token) pair.

    Args:
        keys: int64 `[rows, 1]` from `stream_key`.
        token_ids: int64 `[rows, n]` or `[n]`.

    Returns:
        fp32 `[rows, n]`. The uniform behind it has 40 bits and its small values full relative precision;
        those are the large values of the noise, which decide the draw.
    """
    bits = keys + (token_ids + 1).mul_(_signed(_GOLDEN))
    bits ^= _shift(bits, 30)
    bits *= _signed(_FIRST)
    bits ^= _shift(bits, 27)
    bits *= _signed(_SECOND)
    bits ^= _shift(bits, 31)
    uniform = _shift(bits, 64 - _UNIFORM_BITS).add_(1).float().mul_(2.0**-_UNIFORM_BITS)
    # Rounding may reach 1, whose logarithm below would not be finite.
    return uniform.clamp_(max=1 - 2.0**-24).neg_().log1p_().neg_().log_().neg_()


def row_keys(controls: Sequence[SamplingControls], device: torch.device) -> Tensor:
    """The rows' streams as the column `gumbel` takes."""
    return key_tensor((stream_key(c.seed, c.position) for c in controls), device)


def key_tensor(keys: Iterable[int], device: torch.device) -> Tensor:
    """`stream_key`s as the column `gumbel` takes."""
    return on_device(list(keys), torch.int64, device)[:, None]


def _shift(bits: Tensor, by: int) -> Tensor:
    """Logical shift; torch's own keeps the sign."""
    return (bits >> by).bitwise_and_((1 << (64 - by)) - 1)


def _mix(value: int) -> int:
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value
