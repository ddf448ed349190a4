"""One product `x @ weight.T + bias`, laid out for the device it runs on."""

from typing import Any

import torch
from torch import Tensor

# oneDNN's operators are registered without Python signatures.
_onednn: Any = torch.ops.mkldnn

PACKING_ROWS_HINT = 16


class Linear:
    """A weight that is packed once and multiplied often.

    On CPUs the weight is reordered into oneDNN's blocked layout: twice as fast as MKL at decode's few
    rows, and a row's bits depend neither on the number of rows nor on the number of columns beside it.
    """

    __slots__ = ("_bias", "_packed", "_plain", "in_features", "out_features")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Takes `weight` `[out, in]` and `bias` `[out]`; the weight itself is not kept where it is packed."""
        self.out_features, self.in_features = weight.shape
        self._bias = bias
        self._plain: Tensor | None = None
        self._packed: Tensor | None = None
        if weight.device.type == "cpu" and torch.backends.mkldnn.is_available():
            self._packed = _onednn._reorder_linear_weight(weight.contiguous(), PACKING_ROWS_HINT)
        else:
            self._plain = weight

    def __call__(self, rows: Tensor) -> Tensor:
        """`rows` `[n, in]` → `[n, out]`."""
        if self._packed is not None:
            return _onednn._linear_pointwise(rows, self._packed, self._bias, "none", [], "")
        assert self._plain is not None  # noqa: S101 - set whenever the weight is not packed
        return torch.nn.functional.linear(rows, self._plain, self._bias)


def kernel_name(device: torch.device) -> str:
    """Which library computes the products; part of the fingerprint."""
    if device.type == "cpu":
        return "onednn-packed" if torch.backends.mkldnn.is_available() else "torch"
    return f"torch-{device.type}"
