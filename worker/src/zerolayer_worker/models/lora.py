"""Merges a LoRA adapter, a folder as the peft library writes it, into a model's tensors."""

import hashlib
import re
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.lora_config import (
    CONFIG_NAME,
    AdapterConfig,
    AdapterError,
    AdapterReason,
    read_adapter_config,
)
from zerolayer_worker.models.weights import expected_shapes

WEIGHTS_NAME: Final = "adapter_model.safetensors"

_PREFIX: Final = "base_model.model."
_PART: Final = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])(\.default)?\.weight")
_SAVED: Final = re.compile(r"(?P<module>.+?)(\.modules_to_save(\.default)?)?\.(?P<leaf>weight|bias)")
_MATRIX_DIMS: Final = 2

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two factors, by their keys in the file; `scale · B · A` is added to a weight."""

    a: str
    b: str
    scale: float


@dataclass(frozen=True, slots=True)
class Adapter:
    """A checked adapter, whose tensors are not yet read.

    Attributes:
        path: the file with its tensors.
        digest: `sha256:…` over configuration and tensors.
        pairs: what is added, by the parameter's name in the base model.
        saved: what replaces a parameter altogether, its key in the file by the parameter's name.
        left_out: parameters that were left to an anchor.
    """

    path: Path
    digest: str
    pairs: Mapping[str, Pair]
    saved: Mapping[str, str]
    left_out: tuple[str, ...] = ()


def read_adapter(folder: Path, model: ModelConfig, *, owned: Collection[str], leave_out: bool) -> Adapter:
    """Reads configuration, names and shapes, and checks that they fit the model.

    Args:
        folder: with `adapter_config.json` and `adapter_model.safetensors`.
        model: of the base model.
        owned: parameters that an anchor replaces.
        leave_out: whether what the adapter has for those is left out, instead of refused.

    Raises:
        AdapterError: it can't be merged.
    """
    config, path = read_adapter_config(folder), folder / WEIGHTS_NAME
    found = _shapes(path)
    factors, saved = _sorted_out(found)
    touched = sorted((factors.keys() | saved.keys()) & set(owned))
    if touched and not leave_out:
        raise AdapterError(
            AdapterReason.TOUCHES_ANCHOR,
            f"{path}: {touched[0]} ({len(touched)} in all) is a parameter of the anchor; train the adapter "
            "without it, or leave that part of it out with --skip-ska-lora",
        )
    expected = expected_shapes(model)
    pairs = {
        name: _pair(name, sides, config, found, expected)
        for name, sides in factors.items()
        if name not in touched
    }
    kept = {name: key for name, key in saved.items() if name not in touched}
    for name, key in kept.items():
        _check_shape(key, found[key], expected, name)
    return Adapter(path, _digest(folder), pairs, kept, tuple(touched))


def merge_adapter(adapter: Adapter, tensors: dict[str, Tensor]) -> None:
    """Changes a model's tensors, one at a time in fp32, and keeps their type and device.

    Raises:
        AdapterError: `AdapterNotFinite`, or the file is not what it was when it was checked.
    """
    with _opened(adapter.path) as file:
        for name, pair in adapter.pairs.items():
            weight = tensors[name]
            a, b = (file.get_tensor(key).to(weight.device, torch.float32) for key in (pair.a, pair.b))
            tensors[name] = _finite(name, (weight.float() + pair.scale * (b @ a)).to(weight.dtype))
        for name, key in adapter.saved.items():
            replaced = tensors[name]
            tensors[name] = _finite(name, file.get_tensor(key).to(replaced.device, replaced.dtype))


def _sorted_out(found: Shapes) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """The file's keys: factors by parameter and side, and whole parameters."""
    factors: dict[str, dict[str, str]] = {}
    saved: dict[str, str] = {}
    for key in sorted(found):
        name = key.removeprefix(_PREFIX)
        part, whole = _PART.fullmatch(name), _SAVED.fullmatch(name)
        if part:
            factors.setdefault(f"{part['module']}.weight", {})[part["side"]] = key
        elif name == key or whole is None or ".lora_" in name:
            raise AdapterError(AdapterReason.UNSUPPORTED, f"tensor {key[:200]} is not merged")
        else:
            saved[f"{whole['module']}.{whole['leaf']}"] = key
    return factors, saved


def _pair(
    name: str, sides: Mapping[str, str], config: AdapterConfig, found: Shapes, expected: Shapes
) -> Pair:
    if set(sides) != {"A", "B"}:
        raise AdapterError(AdapterReason.UNREADABLE, f"{name[:200]} has one factor of two")
    a, b = found[sides["A"]], found[sides["B"]]
    if len(expected.get(name, (0, 0))) != _MATRIX_DIMS:
        raise AdapterError(AdapterReason.UNSUPPORTED, f"{name} is no matrix, so nothing can be added to it")
    product = (b[0], a[1]) if len(a) == len(b) == _MATRIX_DIMS and a[0] == b[1] else ()
    _check_shape(f"{sides['B']} · lora_A", product, expected, name)
    return Pair(sides["A"], sides["B"], config.scale(a[0]))


def _check_shape(what: str, shape: tuple[int, ...], expected: Shapes, name: str) -> None:
    if name not in expected:
        cause = f"{name[:200]} is no parameter of this model"
    elif shape != expected[name]:
        cause = f"{what[:200]} has shape {list(shape)}, expected {list(expected[name])}"
    else:
        return
    raise AdapterError(AdapterReason.FOR_ANOTHER_MODEL, cause)


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    with _opened(path) as file:
        return {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118 - no mapping


@contextmanager
def _opened(path: Path) -> Generator[Any]:
    try:
        # The class has no usable type stub.
        with cast("Any", safe_open)(str(path), framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise AdapterError(AdapterReason.UNREADABLE, f"{path}: {str(error)[:200]}") from None


def _finite(name: str, tensor: Tensor) -> Tensor:
    if not torch.isfinite(tensor).all():
        dtype = str(tensor.dtype).removeprefix("torch.")
        raise AdapterError(
            AdapterReason.NOT_FINITE, f"merged, {name} has values that are not finite in {dtype}"
        )
    return tensor


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    for name in (CONFIG_NAME, WEIGHTS_NAME):
        with (folder / name).open("rb") as opened:
            total.update(f"{name}\0{hashlib.file_digest(opened, 'sha256').hexdigest()}\n".encode())
    return f"sha256:{total.hexdigest()}"
