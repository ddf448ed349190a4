"""Some of a step's rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zerolayer_worker.common.transfer import on_device
from zerolayer_worker.sampling.provider import SamplingControls


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are treated alike.

    Attributes:
        numbers: of each, in ascending order.
        controls: of each.
        index: `numbers` on the device; None where these are all rows of the step.
    """

    numbers: tuple[int, ...]
    controls: tuple[SamplingControls, ...]
    index: Tensor | None

    @classmethod
    def of(cls, numbers: Iterable[int], controls: Sequence[SamplingControls], device: torch.device) -> "Rows":
        """These rows of a step with these controls."""
        found = tuple(numbers)
        whole = len(found) == len(controls)
        index = None if whole or not found else on_device(found, torch.int64, device)
        return cls(found, tuple(controls[number] for number in found), index)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, tensor: Tensor) -> Tensor:
        """These rows of a tensor that holds all of the step's; no copy if they are all."""
        return tensor if self.index is None else tensor[self.index]


def listed(tensor: Any) -> list[Any]:
    """A tensor's elements on the host; torch's own stub says nothing about what is in the list."""
    return tensor.tolist()


def tensor_of(array: Any) -> Tensor:
    """A tensor that shares a numpy array's memory; torch's own stub does not know the array's type."""
    return torch.as_tensor(array)
