"""One product `x @ weight.T + bias`, laid out for the device it runs on."""

from typing import Any

import torch
from torch import Tensor

PACKING_ROWS_HINT = 16

# oneDNN's operators come without Python signatures, and under names that begin with an underscore.
_onednn: Any = torch.ops.mkldnn
_pack: Any = getattr(_onednn, "_reorder_linear_weight", None)
_multiply: Any = getattr(_onednn, "_linear_pointwise", None)
_packs_bfloat16: Any = getattr(_onednn, "_is_mkldnn_bf16_supported", None)


def packs(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether weights of this kind are reordered for oneDNN; bfloat16 needs the CPU's support."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available() or _pack is None:
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and bool(_packs_bfloat16()))


class Linear:
    """A weight that is laid out once and multiplied often.

    On CPUs the weight is reordered into oneDNN's blocked layout: twice as fast as MKL at decode's few
    rows, and a row's bits depend neither on the number of rows nor on the number of columns beside it.
    """

    __slots__ = ("_bias", "_packed", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Takes `weight` `[out, in]` and `bias` `[out]`; the weight itself is not kept where it is packed."""
        self._bias = bias
        self._packed = packs(weight.device, weight.dtype)
        self._weight: Tensor = _pack(weight.contiguous(), PACKING_ROWS_HINT) if self._packed else weight

    def __call__(self, rows: Tensor) -> Tensor:
        """`rows` `[n, in]` → `[n, out]`."""
        if self._packed:
            return _multiply(rows, self._weight, self._bias, "none", [], "")
        return torch.nn.functional.linear(rows, self._weight, self._bias)


def kernel_name(device: torch.device, dtype: torch.dtype) -> str:
    """Which library computes the products; part of the fingerprint."""
    return "onednn-packed" if packs(device, dtype) else f"torch-{device.type}"
