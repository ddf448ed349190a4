"""What a GGUF file's fields say about a model, as the `config.json` of a Hugging Face folder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

LLAMA3_POSITIONS: Final = 8192
LLAMA3_LOW, LLAMA3_HIGH = 1.0, 4.0
"""What every Llama 3 was scaled from, and between; a file keeps only the divisors that follow from it."""


class GgufError(ValueError):
    """The file is not a GGUF that can be converted; the message says what is in the way."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A kind of model in GGUF's terms.

    Attributes:
        name: the first part of its fields' names.
        model_type: what Hugging Face calls it.
        interleaved: whether the rows of queries and keys are stored in pairs that rotate together.
        parts: tensors of a layer beyond those that all have, by GGUF's names.
    """

    name: str
    model_type: str
    class_name: str
    interleaved: bool = False
    parts: tuple[str, ...] = ()


_QWEN2_PARTS = ("attn_q.bias", "attn_k.bias", "attn_v.bias")
_QWEN3_PARTS = ("attn_q_norm.weight", "attn_k_norm.weight")
ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    each.name: each
    for each in (
        Architecture("llama", "llama", "LlamaForCausalLM", interleaved=True),
        Architecture("qwen2", "qwen2", "Qwen2ForCausalLM", parts=_QWEN2_PARTS),
        Architecture("qwen3", "qwen3", "Qwen3ForCausalLM", parts=_QWEN3_PARTS),
    )
}


class Fields:
    """A file's fields, those of the architecture by their names within it."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        """Raises `GgufError` for an architecture that can't be converted."""
        self.meta = meta
        named = str(meta.get("general.architecture", ""))
        if named not in ARCHITECTURES:
            raise GgufError(f"architecture {named!r} cannot be converted; known are {sorted(ARCHITECTURES)}")
        self.architecture: Architecture = ARCHITECTURES[named]

    def get(self, name: str, default: Any = None) -> Any:
        """`attention.head_count` is `llama.attention.head_count`, or what the architecture is called."""
        return self.meta.get(f"{self.architecture.name}.{name}", default)

    def need(self, name: str) -> Any:
        """The same for a field without which nothing goes."""
        if (value := self.get(name)) is None:
            raise GgufError(f"the file lacks the field {self.architecture.name}.{name}")
        return value

    def names(self, beginning: str) -> list[str]:
        """Fields of the architecture that begin so, in order, without its own name."""
        prefix = f"{self.architecture.name}."
        return sorted(name.removeprefix(prefix) for name in self.meta if name.startswith(prefix + beginning))

    @property
    def heads(self) -> int:
        """Of queries."""
        return int(self.need("attention.head_count"))

    @property
    def kv_heads(self) -> int:
        """Of keys and values."""
        return int(self.get("attention.head_count_kv", self.heads))

    @property
    def head_dim(self) -> int:
        """Of queries and keys."""
        return int(self.get("attention.key_length", int(self.need("embedding_length")) // self.heads))


def model_config(
    fields: Fields, tensors: Collection[str], divisors: NDArray[np.float32] | None, dtype: str
) -> dict[str, Any]:
    """The content of `config.json`.

    Args:
        fields: the file's.
        tensors: names of the tensors that are written.
        divisors: what the file divides the rotary frequencies by (`rope_freqs`), `[head_dim / 2]`.
        dtype: type of every tensor.

    Raises:
        GgufError: a field is missing, or asks for what the result could not say.
    """
    _refuse(fields)
    tokens = fields.meta.get("tokenizer.ggml.tokens")
    if tokens is None:
        raise GgufError("the file lacks the field tokenizer.ggml.tokens")
    theta = float32(fields.get("rope.freq_base", 10_000.0))
    config: dict[str, Any] = {
        "architectures": [fields.architecture.class_name],
        "model_type": fields.architecture.model_type,
        "attention_bias": False,
        "mlp_bias": False,
        "hidden_act": "silu",
        "hidden_size": int(fields.need("embedding_length")),
        "intermediate_size": int(fields.need("feed_forward_length")),
        "num_hidden_layers": int(fields.need("block_count")),
        "num_attention_heads": fields.heads,
        "num_key_value_heads": fields.kv_heads,
        "head_dim": fields.head_dim,
        "max_position_embeddings": int(fields.need("context_length")),
        "rms_norm_eps": float32(fields.need("attention.layer_norm_rms_epsilon")),
        # Older readers know the first spelling, newer ones the second.
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta, **_scaling(fields, theta, divisors)},
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "vocab_size": len(tokens),
        "dtype": dtype,
    }
    return config | _special_ids(fields.meta)


def _refuse(fields: Fields) -> None:
    """What else a file may ask for changes every result."""
    name = fields.architecture.name
    if (rotated := fields.get("rope.dimension_count", fields.head_dim)) != fields.head_dim:
        raise GgufError(f"{name}.rope.dimension_count {rotated} of {fields.head_dim} cannot be converted")
    if (width := fields.get("attention.value_length", fields.head_dim)) != fields.head_dim:
        raise GgufError(f"{name}.attention.value_length {width}, unlike key_length, cannot be converted")
    for key in ("attention.sliding_window", "attention.scale", "logit_scale", "expert_count"):
        if fields.get(key):
            raise GgufError(f"{name}.{key} {fields.get(key)} cannot be converted")


def _scaling(fields: Fields, theta: float, divisors: NDArray[np.float32] | None) -> dict[str, Any]:
    """The part of `rope_parameters` that says how the rotary embedding is scaled; empty where it is not."""
    kind = str(fields.get("rope.scaling.type", "none"))
    if divisors is not None:
        if kind != "none":
            raise GgufError(f"rope_freqs beside {fields.architecture.name}.rope.scaling.type {kind!r}")
        return _llama3(divisors, theta)
    if kind == "none":
        return {}
    known = {"linear": ("factor",), "yarn": ("factor", "original_context_length")}.get(kind)
    if known is None:
        raise GgufError(f"{fields.architecture.name}.rope.scaling.type {kind!r} cannot be converted")
    named = {name.removeprefix("rope.scaling.") for name in fields.names("rope.scaling.")}
    if extra := named - {"type", "finetuned", *known}:
        raise GgufError(f"{fields.architecture.name}.rope.scaling.{min(extra)} cannot be converted")
    scaling: dict[str, Any] = {"rope_type": kind, "factor": float32(fields.need("rope.scaling.factor"))}
    if kind == "yarn":
        original = int(fields.need("rope.scaling.original_context_length"))
        scaling["original_max_position_embeddings"] = original
    return scaling


def _llama3(divisors: NDArray[np.float32], theta: float) -> dict[str, Any]:
    """Llama 3's scaling, from what it makes of the frequencies: the longest wave shows the factor."""
    factor = round(float(divisors.max()), 3)  # as large as it was, but for its own rounding
    frequencies = theta ** -(np.arange(divisors.size) / divisors.size)
    turns = LLAMA3_POSITIONS * frequencies / (2 * math.pi)
    kept = np.clip((turns - LLAMA3_LOW) / (LLAMA3_HIGH - LLAMA3_LOW), 0, 1)
    if not np.allclose(1 / divisors, kept + (1 - kept) / factor, rtol=1e-3):
        raise GgufError("rope_freqs.weight is not the scaling of Llama 3, and cannot be converted")
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": LLAMA3_LOW,
        "high_freq_factor": LLAMA3_HIGH,
        "original_max_position_embeddings": LLAMA3_POSITIONS,
    }


def _special_ids(meta: Mapping[str, Any]) -> dict[str, Any]:
    ids: dict[str, Any] = {}
    if (bos := meta.get("tokenizer.ggml.bos_token_id")) is not None:
        ids["bos_token_id"] = int(bos)
    # Chat models may end a turn with another token than the end of the text: either one stops.
    ends = [meta.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("eos", "eot")]
    stop = sorted({int(end) for end in ends if end is not None})
    if not stop:
        raise GgufError("the file names no end-of-text token (tokenizer.ggml.eos_token_id)")
    ids["eos_token_id"] = stop[0] if len(stop) == 1 else stop
    if (pad := meta.get("tokenizer.ggml.padding_token_id")) is not None:
        ids["pad_token_id"] = int(pad)
    return ids


def float32(value: float) -> float:
    """The shortest decimal that is the same float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))
