"""What `config.json` asks of the rotary embedding, and which of it is computed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from zerolayer_worker.models.folder import FolderFile, ModelFolderError

DEFAULT_THETA: Final = 10000.0
BETA_FAST, BETA_SLOW = 32.0, 1.0
"""YaRN's own values, for files that name none."""

Size = Annotated[int, Field(gt=0, lt=2**31)]
Positive = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True)
class LinearScaling:
    """Position interpolation (arXiv 2306.15595): every wavelength is stretched by the factor."""

    factor: float


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Llama 3's frequency-dependent stretching of the rotary wavelengths."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_positions: int


@dataclass(frozen=True, slots=True)
class YarnScaling:
    """YaRN (arXiv 2309.00071): a ramp between kept and stretched frequencies, and larger scores.

    Attributes:
        attention_factor: cosine and sine are multiplied by it.
        truncate: whether the ramp's ends are rounded to whole frequencies.
    """

    factor: float
    original_max_positions: int
    beta_fast: float
    beta_slow: float
    attention_factor: float
    truncate: bool


RopeScaling = LinearScaling | Llama3Scaling | YarnScaling


class RopeObject(FolderFile):
    """`rope_scaling`, and the newer `rope_parameters`; each key not known here would change the result."""

    model_config = ConfigDict(extra="allow")

    rope_type: str | None = None
    type: str | None = None
    rope_theta: Positive | None = None
    partial_rotary_factor: float | None = None
    factor: Positive | None = None
    low_freq_factor: Positive | None = None
    high_freq_factor: Positive | None = None
    original_max_position_embeddings: Size | None = None
    beta_fast: Positive | None = None
    beta_slow: Positive | None = None
    attention_factor: Positive | None = None
    mscale: Positive | None = None
    mscale_all_dim: Positive | None = None
    truncate: bool | None = None


_COMMON: Final = frozenset({"rope_type", "type", "rope_theta", "partial_rotary_factor"})
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings"),
}
_OPTIONAL: Final[Mapping[str, frozenset[str]]] = {
    # Some files keep what a scaling once needed beside `default`, which has no use for it.
    "default": frozenset({"factor", "original_max_position_embeddings"}),
    "linear": frozenset({"original_max_position_embeddings"}),
    "yarn": frozenset({"beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate"}),
}


def rope_scaling(rope: RopeObject) -> RopeScaling | None:
    """The scaling that is asked for; None for none.

    Raises:
        ModelFolderError: it is of a kind that is not computed, or lacks a key, or has one too many.
    """
    kind = rope.rope_type or rope.type or "default"
    if kind not in _NEEDED:
        raise ModelFolderError(f"rope scaling of type {kind!r} is not served, only {sorted(_NEEDED)}")
    if rope.partial_rotary_factor not in {None, 1.0}:
        raise ModelFolderError(f"partial_rotary_factor {rope.partial_rotary_factor} is not served, only 1.0")
    given = rope.model_dump(exclude_none=True).keys() - _COMMON
    if extra := given - {*_NEEDED[kind]} - _OPTIONAL.get(kind, frozenset()):
        raise ModelFolderError(f"rope scaling of type {kind!r} with {min(extra)} is not served")
    if lacking := [key for key in _NEEDED[kind] if key not in given]:
        raise ModelFolderError(f"rope scaling {kind!r} lacks {lacking[0]}")
    builders = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}
    return builders[kind](rope) if kind in builders else None


def _linear(rope: RopeObject) -> LinearScaling:
    return LinearScaling(_number(rope.factor))


def _llama3(rope: RopeObject) -> Llama3Scaling:
    low, high = _number(rope.low_freq_factor), _number(rope.high_freq_factor)
    if high <= low:
        raise ModelFolderError(f"high_freq_factor {high} must be greater than low_freq_factor {low}")
    return Llama3Scaling(_number(rope.factor), low, high, rope.original_max_position_embeddings or 0)


def _yarn(rope: RopeObject) -> YarnScaling:
    fast, slow, factor = rope.beta_fast or BETA_FAST, rope.beta_slow or BETA_SLOW, _number(rope.factor)
    if fast <= slow:
        raise ModelFolderError(f"beta_fast {fast} must be greater than beta_slow {slow}")
    attention = rope.attention_factor
    if attention is None and rope.mscale and rope.mscale_all_dim:
        attention = _magnitude(factor, rope.mscale) / _magnitude(factor, rope.mscale_all_dim)
    return YarnScaling(
        factor=factor,
        original_max_positions=rope.original_max_position_embeddings or 0,
        beta_fast=fast,
        beta_slow=slow,
        attention_factor=_magnitude(factor, 1.0) if attention is None else attention,
        truncate=rope.truncate is not False,
    )


def _magnitude(factor: float, weight: float) -> float:
    """How much larger scores become, by YaRN's fit over many models."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _number(value: float | None) -> float:
    """A key that was checked to be there."""
    return value or 0.0
