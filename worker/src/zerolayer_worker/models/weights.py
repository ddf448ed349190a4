"""Reads a safetensors folder into named tensors and refuses anything that does not fit the config."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.folder import FolderFile, ModelFolderError, read_file

INDEX_NAME = "model.safetensors.index.json"
# Buffers that old checkpoints carry and that are computed here.
_COMPUTED_SUFFIX = ".rotary_emb.inv_freq"


class IndexFile(FolderFile):
    """The key of the checkpoint's index that is read: the file that holds each tensor."""

    weight_map: dict[str, str]


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor the checkpoint must hold, by its Hugging Face name."""
    hidden, inner = config.hidden_size, config.intermediate_size
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    if not config.tied_head:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    for layer in range(config.layers):
        p = f"model.layers.{layer}."
        shapes |= {
            p + "input_layernorm.weight": (hidden,),
            p + "post_attention_layernorm.weight": (hidden,),
            p + "self_attn.q_proj.weight": (queries, hidden),
            p + "self_attn.k_proj.weight": (keys, hidden),
            p + "self_attn.v_proj.weight": (keys, hidden),
            p + "self_attn.o_proj.weight": (hidden, queries),
            p + "mlp.gate_proj.weight": (inner, hidden),
            p + "mlp.up_proj.weight": (inner, hidden),
            p + "mlp.down_proj.weight": (hidden, inner),
        }
        if config.qkv_bias:
            shapes |= {
                p + f"self_attn.{n}_proj.bias": (s,)
                for n, s in zip("qkv", (queries, keys, keys), strict=True)
            }
        if config.output_bias:
            shapes[p + "self_attn.o_proj.bias"] = (hidden,)
        if config.qk_norm:
            shapes |= {p + f"self_attn.{n}_norm.weight": (config.head_dim,) for n in "qk"}
    return shapes


def load_tensors(
    folder: Path, config: ModelConfig, dtype: torch.dtype, device: torch.device
) -> dict[str, Tensor]:
    """Loads every expected tensor as `dtype` on `device`.

    Raises:
        ModelFolderError: a tensor is missing, unknown or of the wrong shape, or a file can't be read; the
            message names tensor and file.
    """
    expected = expected_shapes(config)
    files = weight_files(folder)
    tensors: dict[str, Tensor] = {}
    for path in files:
        for name, tensor in _read_file(path):
            if name.endswith(_COMPUTED_SUFFIX) or (config.tied_head and name == "lm_head.weight"):
                continue
            _check(name, tuple(tensor.shape), tensor.dtype, expected, path)
            tensors[name] = tensor.to(device=device, dtype=dtype)
    if missing := sorted(expected.keys() - tensors.keys()):
        where = ", ".join(path.name for path in files)
        raise ModelFolderError(
            f"{folder}: tensor {missing[0]} is missing ({len(missing)} in all) from {where}"
        )
    return tensors


def weight_files(folder: Path) -> list[Path]:
    """The checkpoint's safetensors files: those of the index if there is one, otherwise the single file."""
    index = folder / INDEX_NAME
    if not index.exists():
        single = folder / "model.safetensors"
        if not single.exists():
            raise ModelFolderError(f"{folder}: neither model.safetensors nor {INDEX_NAME} is there")
        return [single]
    files = [folder / name for name in sorted(set(read_file(index, IndexFile).weight_map.values()))]
    for path in files:
        if path.parent != folder or not path.exists():
            raise ModelFolderError(f"{index}: names {path.name}, which is not in the folder")
    return files


def _read_file(path: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        # The class has no usable type stub.
        with cast("Any", safe_open)(str(path), framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - a safetensors handle is no mapping
                yield name, opened.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise ModelFolderError(f"{path}: not a readable safetensors file: {error}") from None


def _check(
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    expected: Mapping[str, tuple[int, ...]],
    path: Path,
) -> None:
    if name not in expected:
        raise ModelFolderError(f"{path}: tensor {name} is unknown to this architecture")
    if shape != expected[name]:
        raise ModelFolderError(
            f"{path}: tensor {name} has shape {list(shape)}, expected {list(expected[name])}"
        )
    if not dtype.is_floating_point:
        raise ModelFolderError(f"{path}: tensor {name} is {dtype}; quantised weights are not served")
