"""Reads a model folder's `config.json` and refuses what the forward pass does not compute."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

from pydantic import BeforeValidator, Field

from zerolayer_worker.models.folder import FolderFile, ModelFolderError, read_file
from zerolayer_worker.models.rope_config import (
    DEFAULT_THETA,
    Positive,
    RopeObject,
    RopeScaling,
    Size,
    YarnScaling,
    rope_scaling,
)

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "SmolLM3ForCausalLM": "smollm3",
}
DEFAULT_EPS = 1e-6
QWEN3_HEAD_DIM = 128
MISTRAL_WINDOW = 4096
SMOLLM3_INTERVAL = 4
SMOLLM3_THETA = 2_000_000.0
"""What these families take for a key that their file lacks, as in `transformers`."""

FULL, SLIDING = "full_attention", "sliding_attention"

Layers = Annotated[int, Field(gt=0, le=10_000)]


def _as_list(value: object) -> object:
    return cast("object", value) if isinstance(value, list) else [value]


EndIds = Annotated[list[Annotated[int, Field(ge=0)]], BeforeValidator(_as_list)]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a Llama-family decoder.

    Attributes:
        family: `llama`, `mistral`, `qwen2`, `qwen3` or `smollm3`.
        max_positions: longest context in tokens for which full attention is what the model was made for.
        qkv_bias: whether the query, key and value projections add a bias.
        output_bias: whether the attention's output projection adds a bias.
        qk_norm: whether queries and keys are normalised per head (Qwen3).
        unrotated: layers without rotary embedding (SmolLM3).
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
    unrotated: frozenset[int]
    eos_ids: frozenset[int]


class ConfigFile(FolderFile):
    """The keys of `config.json` that are read."""

    architectures: list[str] | None = None
    vocab_size: Size
    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    num_key_value_heads: Size | None = None
    head_dim: Size | None = None
    max_position_embeddings: Size
    original_max_position_embeddings: Size | None = None
    sliding_window: Size | None = None
    use_sliding_window: bool | None = None
    max_window_layers: Annotated[int, Field(ge=0)] | None = None
    layer_types: list[str] | None = None
    no_rope_layers: list[Annotated[int, Field(ge=0, le=1)]] | None = None
    no_rope_layer_interval: Size | None = None
    rms_norm_eps: Positive | None = None
    rope_theta: Positive | None = None
    rope_scaling: RopeObject | None = None
    rope_parameters: RopeObject | None = None
    partial_rotary_factor: float | None = None
    tie_word_embeddings: bool | None = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    hidden_act: str | None = None
    quantization_config: object = None
    eos_token_id: EndIds | None = None


class GenerationConfigFile(FolderFile):
    """The key of `generation_config.json` that is read."""

    eos_token_id: EndIds | None = None


def read_config(folder: Path) -> ModelConfig:
    """Reads `config.json` and the end-of-sequence ids of `generation_config.json`.

    Raises:
        ModelFolderError: a file is missing or malformed, or asks for something that is not computed.
    """
    path, generation_path = folder / "config.json", folder / "generation_config.json"
    file = read_file(path, ConfigFile)
    generation = (
        read_file(generation_path, GenerationConfigFile)
        if generation_path.exists()
        else GenerationConfigFile()
    )
    try:
        return _config(file, frozenset([*(file.eos_token_id or ()), *(generation.eos_token_id or ())]))
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}") from None


def _config(file: ConfigFile, eos_ids: frozenset[int]) -> ModelConfig:
    family = _family(file.architectures or [])
    _refuse_unknown(file, family)
    heads = file.num_attention_heads
    kv_heads = file.num_key_value_heads or heads
    if heads % kv_heads:
        raise ModelFolderError(
            f"num_attention_heads {heads} is no multiple of num_key_value_heads {kv_heads}"
        )
    theta, scaling = _rope(file, SMOLLM3_THETA if family == "smollm3" else DEFAULT_THETA)
    attention_bias = bool(file.attention_bias)
    return ModelConfig(
        family=family,
        vocab_size=file.vocab_size,
        hidden_size=file.hidden_size,
        intermediate_size=file.intermediate_size,
        layers=file.num_hidden_layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(file, family),
        max_positions=_max_positions(file, family, scaling),
        norm_eps=file.rms_norm_eps or DEFAULT_EPS,
        rope_theta=theta,
        rope_scaling=scaling,
        tied_head=_tied(file, family),
        qkv_bias=family == "qwen2" or attention_bias,
        output_bias=family != "qwen2" and attention_bias,
        qk_norm=family == "qwen3",
        unrotated=_unrotated(file) if family == "smollm3" else frozenset(),
        eos_ids=eos_ids,
    )


def _family(named: list[str]) -> str:
    for architecture in named:
        if architecture in ARCHITECTURES:
            return ARCHITECTURES[architecture]
    raise ModelFolderError(f"architectures {named} is not served; known are {sorted(ARCHITECTURES)}")


def _refuse_unknown(file: ConfigFile, family: str) -> None:
    if file.hidden_act not in {None, "silu", "swish"}:
        raise ModelFolderError(f"hidden_act {file.hidden_act!r} is not served, only 'silu'")
    if file.attention_bias and family == "mistral":
        raise ModelFolderError("attention_bias true is not served for this architecture")
    if file.mlp_bias:
        raise ModelFolderError("mlp_bias true is not served")
    if file.quantization_config is not None:
        raise ModelFolderError(
            "quantization_config is not served; convert the weights to bfloat16 or float32"
        )
    if other := {*(file.layer_types or ())} - {FULL, SLIDING}:
        raise ModelFolderError(
            f"layer_types with {min(other)!r} is not served, only {FULL!r} and {SLIDING!r}"
        )


def _tied(file: ConfigFile, family: str) -> bool:
    return family == "smollm3" if file.tie_word_embeddings is None else file.tie_word_embeddings


def _unrotated(file: ConfigFile) -> frozenset[int]:
    """SmolLM3's layers without rotary embedding: 0 in the file's list, or else every fourth one."""
    interval = file.no_rope_layer_interval or SMOLLM3_INTERVAL
    rotated = file.no_rope_layers
    if rotated is None:
        rotated = [int((index + 1) % interval != 0) for index in range(file.num_hidden_layers)]
    if len(rotated) < file.num_hidden_layers:
        raise ModelFolderError(f"no_rope_layers has {len(rotated)} entries, fewer than the model has layers")
    return frozenset(index for index, turned in enumerate(rotated[: file.num_hidden_layers]) if not turned)


def _head_dim(file: ConfigFile, family: str) -> int:
    usual = QWEN3_HEAD_DIM if family == "qwen3" else file.hidden_size // file.num_attention_heads
    head_dim = file.head_dim or usual
    if head_dim < 1 or head_dim % 2:
        raise ModelFolderError(f"head_dim {head_dim} is not even and positive; rotary embedding needs pairs")
    return head_dim


def _max_positions(file: ConfigFile, family: str, scaling: RopeScaling | None) -> int:
    """Up to the sliding window, windowed attention and full attention are the same thing."""
    positions = file.max_position_embeddings
    if isinstance(scaling, YarnScaling):
        # Files that add YaRN to a model often leave the length that the model had without it.
        positions = max(positions, int(scaling.factor * scaling.original_max_positions))
    window = _window(file, family)
    return positions if window is None else min(positions, window)


def _window(file: ConfigFile, family: str) -> int | None:
    """The sliding window of those layers that have one; None where none has."""
    if family not in {"qwen2", "qwen3", "smollm3"}:
        absent = "sliding_window" not in file.model_fields_set and family == "mistral"
        return MISTRAL_WINDOW if absent else file.sliding_window
    if not file.use_sliding_window:
        return None
    windowed = (
        SLIDING in file.layer_types
        if file.layer_types is not None
        else file.max_window_layers is None or file.max_window_layers < file.num_hidden_layers
    )
    return file.sliding_window if windowed else None


def _rope(file: ConfigFile, usual: float) -> tuple[float, RopeScaling | None]:
    """Both spellings: `rope_theta` with `rope_scaling`, and the newer `rope_parameters`."""
    given: dict[str, object] = {"partial_rotary_factor": file.partial_rotary_factor}
    for part in (file.rope_scaling, file.rope_parameters):
        given |= part.model_dump(exclude_none=True) if part is not None else {}
    if file.original_max_position_embeddings is not None:
        given["original_max_position_embeddings"] = file.original_max_position_embeddings
    rope = RopeObject.model_validate(given)
    return rope.rope_theta or file.rope_theta or usual, rope_scaling(rope)
