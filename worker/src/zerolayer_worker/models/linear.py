"""One product `x @ weight.T + bias`, laid out for the device it runs on."""

from typing import Any

import torch
from torch import Tensor

PACKING_ROWS_HINT = 16

# oneDNN's operators come without Python signatures, and under names that begin with an underscore.
_onednn: Any = torch.ops.mkldnn
_pack: Any = getattr(_onednn, "_reorder_linear_weight", None)
_multiply: Any = getattr(_onednn, "_linear_pointwise", None)


def packs(device: torch.device) -> bool:
    """Whether weights on `device` are reordered for oneDNN."""
    return device.type == "cpu" and torch.backends.mkldnn.is_available() and _pack is not None


class Linear:
    """A weight that is laid out once and multiplied often.

    On CPUs the weight is reordered into oneDNN's blocked layout: twice as fast as MKL at decode's few
    rows, and a row's bits depend neither on the number of rows nor on the number of columns beside it.
    """

    __slots__ = ("_bias", "_packed", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Takes `weight` `[out, in]` and `bias` `[out]`; the weight itself is not kept where it is packed."""
        self._bias = bias
        self._packed = packs(weight.device)
        self._weight: Tensor = _pack(weight.contiguous(), PACKING_ROWS_HINT) if self._packed else weight

    def __call__(self, rows: Tensor) -> Tensor:
        """`rows` `[n, in]` → `[n, out]`."""
        if self._packed:
            return _multiply(rows, self._weight, self._bias, "none", [], "")
        return torch.nn.functional.linear(rows, self._weight, self._bias)


def kernel_name(device: torch.device) -> str:
    """Which library computes the products; part of the fingerprint."""
    return "onednn-packed" if packs(device) else f"torch-{device.type}"
