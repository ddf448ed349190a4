"""Numbers on their way from the host to where tensors are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def on_device(values: Sequence[Any], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of (nested) numbers; the host does not wait for what a GPU has still to compute.

    It would for memory that the system may page out, which a GPU can't read by itself.
    """
    pinned = device.type == "cuda"
    return torch.tensor(values, dtype=dtype, pin_memory=pinned).to(device, non_blocking=pinned)
