"""Decides how weights are kept and which kernels decode with them: once, as results depend on it."""

import logging
from importlib.util import find_spec

import torch

from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.memory import memory_limit
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.native.build import NativeError
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.models.native.step import unsupported
from zerolayer_worker.models.quantised import Format
from zerolayer_worker.models.weights import expected_shapes

# As in GGUF's Q4_1 files: the head, which is read once per token but decides it, keeps eight bits.
_QUANTISATIONS: dict[str, tuple[Format, Format] | None] = {
    "none": None,
    "int8": (Format.INT8, Format.INT8),
    "int4": (Format.INT4, Format.INT8),
}
_KERNELS = frozenset({"auto", "torch", "native"})
# Native decode steps read weights of their own layout. For weights in full precision that is a second copy,
# which a large model, whose time goes into memory traffic either way, is better without, and so is a
# container with little memory.
_COPY_LIMIT_BYTES = 2 << 30
_COPY_SHARE = 1 / 8

_log = logging.getLogger(__name__)


def choose_storage(
    config: EngineConfig, model: ModelConfig, device: torch.device, dtype: torch.dtype
) -> tuple[Storage, Kernels | None]:
    """Storage and, where decode steps are native, the library.

    Raises:
        ValueError: what is asked for does not exist, or not for this model or device.
        NativeError: native kernels are asked for and can't be had.
    """
    if config.quantization not in _QUANTISATIONS or config.kernels not in _KERNELS:
        raise ValueError(
            f"quantization must be one of {', '.join(_QUANTISATIONS)} (is {config.quantization}), "
            f"kernels one of {', '.join(sorted(_KERNELS))} (is {config.kernels})"
        )
    formats = _QUANTISATIONS[config.quantization]
    obstacle = "it is for CPUs" if device.type != "cpu" else unsupported(model)
    if formats is not None and obstacle is not None:
        raise ValueError(f"quantization {config.quantization} is not possible: {obstacle}")
    kernels = _kernels(config.kernels, model, dtype, quantised=formats is not None, obstacle=obstacle)
    layers, head = formats or (None, None)
    paged = device.type == "cuda" and config.kernels != "torch" and find_spec("triton") is not None
    return Storage(layers=layers, head=head, native=kernels is not None, paged=paged), kernels


def _kernels(
    wanted: str, model: ModelConfig, dtype: torch.dtype, *, quantised: bool, obstacle: str | None
) -> Kernels | None:
    if wanted == "torch":
        return None
    if wanted == "native" and obstacle is not None:
        raise ValueError(f"native kernels are not possible: {obstacle}")
    if wanted == "auto" and (obstacle is not None or not (quantised or _copy_fits(model, dtype))):
        return None
    try:
        return Kernels(torch.get_num_threads())
    except NativeError as error:
        if wanted == "native":
            raise
        _log.warning("decode steps run through torch, which is slower", extra={"reason": str(error)})
        return None


def _copy_fits(model: ModelConfig, dtype: torch.dtype) -> bool:
    sizes = (torch.Size(shape).numel() for shape in expected_shapes(model).values())
    return sum(sizes) * dtype.itemsize <= min(_COPY_LIMIT_BYTES, _COPY_SHARE * memory_limit())
