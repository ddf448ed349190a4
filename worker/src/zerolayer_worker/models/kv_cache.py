"""Keys and values of every running sequence, one fixed slot each."""

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig


class KvCache:
    """Tensors of shape `[layers, slots, kv_heads, length, head_dim]`.

    The memory is reserved but not touched, so that a CPU worker grows only as far as contexts do.
    Nothing beyond a sequence's own length is ever read, hence what a slot held before can't matter.
    """

    def __init__(
        self, config: ModelConfig, slots: int, length: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        shape = (config.layers, slots, config.kv_heads, length, config.head_dim)
        self.keys: Tensor = torch.empty(shape, dtype=dtype, device=device)
        self.values: Tensor = torch.empty(shape, dtype=dtype, device=device)

    @property
    def slots(self) -> int:
        """How many sequences fit."""
        return self.keys.shape[1]

    @property
    def length(self) -> int:
        """Longest sequence in tokens."""
        return self.keys.shape[3]
