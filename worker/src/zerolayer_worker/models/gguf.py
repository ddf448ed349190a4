"""Turns a Llama-family GGUF file into a Hugging Face model folder.

The folder is what the worker and `transformers` both load: `config.json`, `generation_config.json`,
`tokenizer.json`, `tokenizer_config.json` and `model.safetensors`. Quantised tensors are expanded.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]

from zerolayer_worker.models.gguf_tokenizer import build_tokenizer, tokenizer_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}

_TOP_LEVEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_PER_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class GgufError(ValueError):
    """The file is not a GGUF that can be converted; the message says what is in the way."""


def convert_gguf(src: Path, dest: Path, dtype: str) -> None:
    """Write `src` as a Hugging Face folder `dest`.

    The folder appears whole or not at all: it is written beside `dest` and renamed.

    Args:
        src: A GGUF file of architecture `llama` with a byte-level BPE vocabulary.
        dest: The folder to make; it must not exist, its parent is made if missing.
        dtype: `float32`, `bfloat16` or `float16`; the type of every tensor written.

    Raises:
        GgufError: `src` cannot be converted.
        ValueError: `dtype` is none of the three.
        FileExistsError: `dest` exists.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} is none of {', '.join(DTYPES)}")
    if dest.exists():
        raise FileExistsError(f"{dest} exists; remove it or name another folder")
    reader = _open(src)
    meta = _metadata(reader)
    dest.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{dest.name}.", dir=dest.parent))
    try:
        _write_folder(reader, meta, partial, dtype)
        partial.chmod(0o755)
        partial.rename(dest)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_folder(reader: GGUFReader, meta: Mapping[str, Any], folder: Path, dtype: str) -> None:
    tensors = dict(_tensors(reader, meta, DTYPES[dtype]))
    config = _model_config(meta, tensors, dtype)
    missing = _expected_names(config) - tensors.keys()
    if missing:
        raise GgufError(f"the file lacks the tensor of {min(missing)} ({len(missing)} missing)")
    _write_json(folder / "config.json", config)
    _write_json(
        folder / "generation_config.json",
        {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if key in config},
    )
    build_tokenizer(meta).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", tokenizer_config(meta))
    weights = folder / "model.safetensors"
    save_file(tensors, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # the library makes it private, and the worker runs as another user


def _open(src: Path) -> GGUFReader:
    try:
        return GGUFReader(src)
    except (ValueError, IndexError, OverflowError) as error:
        raise GgufError(f"{src} is not a whole GGUF file: {error}") from error


def _metadata(reader: GGUFReader) -> dict[str, Any]:
    meta = {key: field.contents() for key, field in reader.fields.items()}
    architecture = meta.get("general.architecture")
    if architecture != "llama":
        raise GgufError(f"architecture {architecture!r} cannot be converted; only 'llama' can")
    return meta


def _tensors(
    reader: GGUFReader, meta: Mapping[str, Any], dtype: torch.dtype
) -> Iterator[tuple[str, torch.Tensor]]:
    heads = {
        "attn_q": int(_need(meta, "llama.attention.head_count")),
        "attn_k": int(_kv_heads(meta)),
    }
    for tensor in reader.tensors:
        name = _hf_name(tensor.name)
        weight = cast("NDArray[np.float32]", dequantize(tensor.data, tensor.tensor_type))
        part = tensor.name.split(".")[-2]
        if part in heads:
            weight = _unpermute(weight, heads[part])
        yield name, torch.tensor(weight, dtype=dtype)


def _unpermute(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo the row order that llama.cpp's rotary embedding wants.

    GGUF keeps the two halves of each head interleaved (pairs are neighbours); Hugging Face keeps them
    one after the other.

    Args:
        weight: `[heads * head_dim, hidden]`.
        heads: Query heads or key heads.
    """
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def _hf_name(name: str) -> str:
    if name in _TOP_LEVEL:
        return _TOP_LEVEL[name]
    match name.split("."):
        case ["blk", layer, part, "weight"] if part in _PER_LAYER:
            return f"model.layers.{layer}.{_PER_LAYER[part]}.weight"
        case _:
            # Biases, experts and scaled rotary frequencies change the result: never drop one silently.
            raise GgufError(f"tensor {name} belongs to a kind of model that is not supported")


def _expected_names(config: Mapping[str, Any]) -> set[str]:
    names = {"model.embed_tokens.weight", "model.norm.weight"}
    for layer in range(config["num_hidden_layers"]):
        names |= {f"model.layers.{layer}.{part}.weight" for part in _PER_LAYER.values()}
    return names


def _model_config(meta: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], dtype: str) -> dict[str, Any]:
    hidden = int(_need(meta, "llama.embedding_length"))
    heads = int(_need(meta, "llama.attention.head_count"))
    head_dim = int(meta.get("llama.attention.key_length", hidden // heads))
    theta = _theta(meta, head_dim)
    tied = "lm_head.weight" not in tensors
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": int(_need(meta, "llama.feed_forward_length")),
        "num_hidden_layers": int(_need(meta, "llama.block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": _kv_heads(meta),
        "head_dim": head_dim,
        "max_position_embeddings": int(_need(meta, "llama.context_length")),
        "rms_norm_eps": _float32(_need(meta, "llama.attention.layer_norm_rms_epsilon")),
        # Older readers know the first spelling, newer ones the second.
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "tie_word_embeddings": tied,
        "vocab_size": len(_need(meta, "tokenizer.ggml.tokens")),
        "dtype": dtype,
    }
    return config | _special_ids(meta)


def _theta(meta: Mapping[str, Any], head_dim: int) -> float:
    """The rotary embedding's base; what else a file may ask of it changes every result."""
    if (scaling := meta.get("llama.rope.scaling.type", "none")) != "none":
        raise GgufError(f"llama.rope.scaling.type {scaling!r} cannot be converted")
    if (rotated := meta.get("llama.rope.dimension_count", head_dim)) != head_dim:
        raise GgufError(f"llama.rope.dimension_count {rotated} of {head_dim} cannot be converted")
    return _float32(meta.get("llama.rope.freq_base", 10_000.0))


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


def _kv_heads(meta: Mapping[str, Any]) -> int:
    return int(meta.get("llama.attention.head_count_kv", _need(meta, "llama.attention.head_count")))


def _need(meta: Mapping[str, Any], key: str) -> Any:
    if key not in meta:
        raise GgufError(f"the file lacks the field {key}")
    return meta[key]


def _float32(value: float) -> float:
    """The shortest decimal that is the same float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
