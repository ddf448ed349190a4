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

import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]

from zerolayer_worker.models.gguf_config import Fields, GgufError, model_config
from zerolayer_worker.models.gguf_tokenizer import build_tokenizer, tokenizer_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
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
_ROPE_DIVISORS = "rope_freqs.weight"
_IN_ALL = {
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
_PER_LAYER = _IN_ALL | {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}


def convert_gguf(src: Path, dest: Path, dtype: str) -> None:
    """Write `src` as a Hugging Face folder `dest`.

    The folder appears whole or not at all: it is written beside `dest` and renamed.

    Args:
        src: A GGUF file of an architecture and with a vocabulary that are known.
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
    fields = Fields({key: field.contents() for key, field in reader.fields.items()})
    dest.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{dest.name}.", dir=dest.parent))
    try:
        _write_folder(reader, fields, partial, dtype)
        partial.chmod(0o755)
        partial.rename(dest)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_folder(reader: GGUFReader, fields: Fields, folder: Path, dtype: str) -> None:
    meta = fields.meta
    tensors = dict(_tensors(reader, fields, DTYPES[dtype]))
    config = model_config(fields, tensors.keys(), _rope_divisors(reader), dtype)
    missing = _expected_names(fields, config) - tensors.keys()
    if missing:
        raise GgufError(f"the file lacks the tensor of {min(missing)} ({len(missing)} missing)")
    _write_json(folder / "config.json", config)
    _write_json(
        folder / "generation_config.json",
        {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if key in config},
    )
    build_tokenizer(meta).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", tokenizer_config(meta, config["max_position_embeddings"]))
    weights = folder / "model.safetensors"
    save_file(tensors, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # the library makes it private, and the worker runs as another user


def _open(src: Path) -> GGUFReader:
    try:
        return GGUFReader(src)
    except (ValueError, IndexError, OverflowError) as error:
        raise GgufError(f"{src} is not a whole GGUF file: {error}") from error


def _rope_divisors(reader: GGUFReader) -> NDArray[np.float32] | None:
    found = [tensor for tensor in reader.tensors if tensor.name == _ROPE_DIVISORS]
    return cast("NDArray[np.float32]", dequantize(found[0].data, found[0].tensor_type)) if found else None


def _tensors(reader: GGUFReader, fields: Fields, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    heads = {"attn_q": fields.heads, "attn_k": fields.kv_heads} if fields.architecture.interleaved else {}
    for tensor in reader.tensors:
        if tensor.name == _ROPE_DIVISORS:
            continue
        name = _hf_name(tensor.name, fields)
        try:
            weight = cast("NDArray[np.float32]", dequantize(tensor.data, tensor.tensor_type))
        except RuntimeError:
            raise GgufError(
                f"tensor {tensor.name} is of type {tensor.tensor_type.name}, which has no meaning on its own"
            ) from None
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


def _hf_name(name: str, fields: Fields) -> str:
    if name in _TOP_LEVEL:
        return _TOP_LEVEL[name]
    match name.split("."):
        case ["blk", layer, part, kind] if f"{part}.{kind}" in _parts(fields):
            return f"model.layers.{layer}.{_PER_LAYER[part]}.{kind}"
        case _:
            # Biases, experts and the like change the result: never drop one silently.
            raise GgufError(f"tensor {name} belongs to a kind of model that is not supported")


def _parts(fields: Fields) -> set[str]:
    """The tensors of a layer, all of which have to be there."""
    return {f"{part}.weight" for part in _IN_ALL} | {*fields.architecture.parts}


def _expected_names(fields: Fields, config: Mapping[str, Any]) -> set[str]:
    names = {"model.embed_tokens.weight", "model.norm.weight"}
    for layer in range(config["num_hidden_layers"]):
        names |= {_hf_name(f"blk.{layer}.{part}", fields) for part in _parts(fields)}
    return names


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
