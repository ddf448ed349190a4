"""Reads a model folder's `config.json` and refuses what the forward pass does not compute."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}


class ModelFolderError(ValueError):
    """The model folder can't be served; the message names the file, the key and what is wrong."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Llama 3's frequency-dependent stretching of the rotary wavelengths."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_positions: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a Llama-family decoder.

    Attributes:
        family: `llama`, `mistral`, `qwen2` or `qwen3`.
        max_positions: longest context in tokens for which full attention is what the model was made for.
        qkv_bias: whether the query, key and value projections add a bias.
        output_bias: whether the attention's output projection adds a bias.
        qk_norm: whether queries and keys are normalised per head (Qwen3).
        eos_ids: token ids that end an answer.
    """

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling | None
    tied_head: bool
    qkv_bias: bool
    output_bias: bool
    qk_norm: bool
    eos_ids: frozenset[int]


def read_config(folder: Path) -> ModelConfig:
    """Reads `config.json` and the end-of-sequence ids of `generation_config.json`.

    Raises:
        ModelFolderError: a file is missing or malformed, or asks for something that is not computed.
    """
    path = folder / "config.json"
    raw = read_json(path)
    try:
        return _parse(raw, _eos_ids(raw, folder / "generation_config.json"))
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelFolderError(f"{path}: a value is of the wrong type: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Reads one of the folder's files.

    Raises:
        ModelFolderError: it is missing, not JSON, or not an object.
    """
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFolderError(f"{path}: file is missing") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFolderError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFolderError(f"{path}: must hold a JSON object")
    return cast("dict[str, Any]", value)


def _parse(raw: Mapping[str, Any], eos_ids: frozenset[int]) -> ModelConfig:
    family = _family(raw)
    _refuse_unknown(raw)
    heads = _positive(raw, "num_attention_heads")
    hidden = _positive(raw, "hidden_size")
    kv_heads = _positive(raw, "num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise ModelFolderError(
            f"num_attention_heads {heads} is no multiple of num_key_value_heads {kv_heads}"
        )
    head_dim = _positive(raw, "head_dim", default=hidden // heads)
    if head_dim % 2:
        raise ModelFolderError(f"head_dim {head_dim} is odd; rotary embedding needs pairs")
    theta, scaling = _rope(raw)
    attention_bias = bool(raw.get("attention_bias", False))
    return ModelConfig(
        family=family,
        vocab_size=_positive(raw, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=_positive(raw, "intermediate_size"),
        layers=_positive(raw, "num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        max_positions=_max_positions(raw),
        norm_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=theta,
        rope_scaling=scaling,
        tied_head=bool(raw.get("tie_word_embeddings", False)),
        qkv_bias=family == "qwen2" or attention_bias,
        output_bias=family != "qwen2" and attention_bias,
        qk_norm=family == "qwen3",
        eos_ids=eos_ids,
    )


def _family(raw: Mapping[str, Any]) -> str:
    named = cast("list[str]", raw.get("architectures") or [])
    for architecture in named:
        if architecture in ARCHITECTURES:
            return ARCHITECTURES[architecture]
    raise ModelFolderError(f"architectures {named} is not served; known are {sorted(ARCHITECTURES)}")


def _refuse_unknown(raw: Mapping[str, Any]) -> None:
    if (activation := raw.get("hidden_act", "silu")) not in {"silu", "swish"}:
        raise ModelFolderError(f"hidden_act {activation!r} is not served, only 'silu'")
    if raw.get("mlp_bias"):
        raise ModelFolderError("mlp_bias true is not served")
    if raw.get("quantization_config") is not None:
        raise ModelFolderError(
            "quantization_config is not served; convert the weights to bfloat16 or float32"
        )
    if (partial := raw.get("partial_rotary_factor", 1.0)) != 1.0:
        raise ModelFolderError(f"partial_rotary_factor {partial} is not served, only 1.0")


def _positive(raw: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = raw.get(key)
    if value is None:
        value = default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelFolderError(f"{key} must be a positive whole number, not {value!r}")
    return value


def _max_positions(raw: Mapping[str, Any]) -> int:
    """Up to the sliding window, windowed attention and full attention are the same thing."""
    longest = _positive(raw, "max_position_embeddings")
    uses_window = bool(raw.get("use_sliding_window", True))
    if uses_window and raw.get("sliding_window") is not None:
        return min(longest, _positive(raw, "sliding_window"))
    return longest


def _rope(raw: Mapping[str, Any]) -> tuple[float, RopeScaling | None]:
    """Both spellings: `rope_theta` with `rope_scaling`, and the newer `rope_parameters`."""
    merged: dict[str, Any] = {"rope_theta": raw.get("rope_theta")}
    for key in ("rope_scaling", "rope_parameters"):
        part: object = raw.get(key)
        if isinstance(part, dict):
            merged |= {k: v for k, v in cast("dict[str, Any]", part).items() if v is not None}
        elif part is not None:
            raise ModelFolderError(f"{key} must be an object, not {part!r}")
    theta = float(merged["rope_theta"] or 10000.0)
    kind = merged.get("rope_type", merged.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind != "llama3":
        raise ModelFolderError(f"rope scaling of type {kind!r} is not served, only 'default' and 'llama3'")
    try:
        scaling = RopeScaling(
            factor=float(merged["factor"]),
            low_freq_factor=float(merged["low_freq_factor"]),
            high_freq_factor=float(merged["high_freq_factor"]),
            original_max_positions=int(merged["original_max_position_embeddings"]),
        )
    except KeyError as error:
        raise ModelFolderError(f"rope scaling 'llama3' lacks {error.args[0]}") from None
    return theta, scaling


def _eos_ids(raw: Mapping[str, Any], generation_config: Path) -> frozenset[int]:
    sources = [raw]
    if generation_config.exists():
        sources.append(read_json(generation_config))
    found: set[int] = set()
    for source in sources:
        value: object = source.get("eos_token_id")
        found.update(v for v in _as_list(value) if isinstance(v, int))
    return frozenset(found)


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]
