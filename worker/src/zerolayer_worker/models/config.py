"""Reads a model folder's `config.json` and refuses what the forward pass does not compute."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

from pydantic import BeforeValidator, ConfigDict, Field

from zerolayer_worker.models.folder import FolderFile, ModelFolderError, read_file

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}
DEFAULT_THETA = 10000.0
DEFAULT_EPS = 1e-6

Size = Annotated[int, Field(gt=0, lt=2**31)]
Layers = Annotated[int, Field(gt=0, le=10_000)]
Positive = Annotated[float, Field(gt=0)]


def _as_list(value: object) -> object:
    return cast("object", value) if isinstance(value, list) else [value]


EndIds = Annotated[list[Annotated[int, Field(ge=0)]], BeforeValidator(_as_list)]


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
    sliding_window: Size | None = None
    use_sliding_window: bool | None = None
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
    _refuse_unknown(file)
    heads = file.num_attention_heads
    kv_heads = file.num_key_value_heads or heads
    if heads % kv_heads:
        raise ModelFolderError(
            f"num_attention_heads {heads} is no multiple of num_key_value_heads {kv_heads}"
        )
    theta, scaling = _rope(file)
    attention_bias = bool(file.attention_bias)
    return ModelConfig(
        family=family,
        vocab_size=file.vocab_size,
        hidden_size=file.hidden_size,
        intermediate_size=file.intermediate_size,
        layers=file.num_hidden_layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(file),
        max_positions=_max_positions(file),
        norm_eps=file.rms_norm_eps or DEFAULT_EPS,
        rope_theta=theta,
        rope_scaling=scaling,
        tied_head=bool(file.tie_word_embeddings),
        qkv_bias=family == "qwen2" or attention_bias,
        output_bias=family != "qwen2" and attention_bias,
        qk_norm=family == "qwen3",
        eos_ids=eos_ids,
    )


def _family(named: list[str]) -> str:
    for architecture in named:
        if architecture in ARCHITECTURES:
            return ARCHITECTURES[architecture]
    raise ModelFolderError(f"architectures {named} is not served; known are {sorted(ARCHITECTURES)}")


def _refuse_unknown(file: ConfigFile) -> None:
    if file.hidden_act not in {None, "silu", "swish"}:
        raise ModelFolderError(f"hidden_act {file.hidden_act!r} is not served, only 'silu'")
    if file.mlp_bias:
        raise ModelFolderError("mlp_bias true is not served")
    if file.quantization_config is not None:
        raise ModelFolderError(
            "quantization_config is not served; convert the weights to bfloat16 or float32"
        )


def _head_dim(file: ConfigFile) -> int:
    head_dim = file.head_dim or file.hidden_size // file.num_attention_heads
    if head_dim < 1 or head_dim % 2:
        raise ModelFolderError(f"head_dim {head_dim} is not even and positive; rotary embedding needs pairs")
    return head_dim


def _max_positions(file: ConfigFile) -> int:
    """Up to the sliding window, windowed attention and full attention are the same thing."""
    if file.sliding_window is None or file.use_sliding_window is False:
        return file.max_position_embeddings
    return min(file.max_position_embeddings, file.sliding_window)


def _rope(file: ConfigFile) -> tuple[float, RopeScaling | None]:
    """Both spellings: `rope_theta` with `rope_scaling`, and the newer `rope_parameters`."""
    given: dict[str, object] = {"partial_rotary_factor": file.partial_rotary_factor}
    for part in (file.rope_scaling, file.rope_parameters):
        given |= part.model_dump(exclude_none=True) if part is not None else {}
    rope = RopeObject.model_validate(given)
    kind = rope.rope_type or rope.type or "default"
    if kind not in {"default", "llama3"}:
        raise ModelFolderError(f"rope scaling of type {kind!r} is not served, only 'default' and 'llama3'")
    if rope.partial_rotary_factor not in {None, 1.0}:
        raise ModelFolderError(f"partial_rotary_factor {rope.partial_rotary_factor} is not served, only 1.0")
    if rope.model_extra:
        raise ModelFolderError(f"rope scaling of type {kind!r} with {min(rope.model_extra)} is not served")
    theta = rope.rope_theta or file.rope_theta or DEFAULT_THETA
    return theta, _llama3(rope) if kind == "llama3" else None


def _llama3(rope: RopeObject) -> RopeScaling:
    factor, low, high = rope.factor, rope.low_freq_factor, rope.high_freq_factor
    positions = rope.original_max_position_embeddings
    if factor is None or low is None or high is None or positions is None:
        needed = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
        lacking = next(key for key in needed if getattr(rope, key) is None)
        raise ModelFolderError(f"rope scaling 'llama3' lacks {lacking}")
    if high <= low:
        raise ModelFolderError(f"high_freq_factor {high} must be greater than low_freq_factor {low}")
    return RopeScaling(factor, low, high, positions)
