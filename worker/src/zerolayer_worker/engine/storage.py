"""Decides how weights are kept and which kernels run with them: once, as results depend on it."""

import logging
from importlib.util import find_spec

import torch

from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.device import multiplies_bfloat16
from zerolayer_worker.engine.memory import memory_limit
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.native.build import NativeError
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.models.native.model import unsupported
from zerolayer_worker.models.quantised import Format
from zerolayer_worker.models.weights import expected_shapes

# As in GGUF's Q4_1 files: the head, which is read once per token but decides it, keeps eight bits.
_QUANTISATIONS: dict[str, tuple[Format, Format] | None] = {
    "none": None,
    "int8": (Format.INT8, Format.INT8),
    "int4": (Format.INT4, Format.INT8),
}
_KERNELS = frozenset({"auto", "torch", "native"})
# Where decode steps are native and prompts are torch's, weights are held twice, in a layout for each. In full
# precision a large model, whose time goes into memory traffic either way, is better without the copy, and so
# is a container with little memory.
_COPY_LIMIT_BYTES = 2 << 30
_COPY_SHARE = 1 / 8

_log = logging.getLogger(__name__)


def choose_storage(
    config: EngineConfig, model: ModelConfig, device: torch.device, dtype: torch.dtype
) -> tuple[Storage, Kernels | None]:
    """Storage and, where passes are native, the library.

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
    kernels = _kernels(config.kernels, obstacle)
    prompts = kernels is not None and _prompts_are_faster(kernels, dtype)
    if kernels is not None and config.kernels == "auto" and formats is None:
        kernels = kernels if prompts or _copy_fits(model, dtype) else None
    layers, head = formats or (None, None)
    paged = device.type == "cuda" and config.kernels != "torch" and find_spec("triton") is not None
    storage = Storage(layers=layers, head=head, native=kernels is not None, prompts=prompts, paged=paged)
    return storage, kernels


def _kernels(wanted: str, obstacle: str | None) -> Kernels | None:
    if wanted == "torch":
        return None
    if obstacle is not None:
        if wanted == "native":
            raise ValueError(f"native kernels are not possible: {obstacle}")
        return None
    if wanted == "native":
        return Kernels(torch.get_num_threads())
    return _opened("the model runs")


def sampling_kernels(config: EngineConfig, device: torch.device, kernels: Kernels | None) -> Kernels | None:
    """The library for the choice of tokens, for any model; that of its decode steps where they have one."""
    if kernels is not None or device.type != "cpu" or config.kernels != "auto" or config.sampler != "auto":
        return kernels
    return _opened("tokens are chosen")


def _opened(what: str) -> Kernels | None:
    try:
        return Kernels(torch.get_num_threads())
    except NativeError as error:
        _log.warning("%s through torch, which is slower", what, extra={"reason": str(error)})
        return None


def _prompts_are_faster(kernels: Kernels, dtype: torch.dtype) -> bool:
    """Than through torch, which multiplies bfloat16 itself where the CPU can; the library widens it."""
    return kernels.prompts and not (dtype == torch.bfloat16 and multiplies_bfloat16())


def _copy_fits(model: ModelConfig, dtype: torch.dtype) -> bool:
    sizes = (torch.Size(shape).numel() for shape in expected_shapes(model).values())
    return sum(sizes) * dtype.itemsize <= min(_COPY_LIMIT_BYTES, _COPY_SHARE * memory_limit())
