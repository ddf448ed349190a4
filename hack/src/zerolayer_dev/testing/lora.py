"""Low-rank adapters, just enough of them to compare anchors with: trained by the same loop, then merged."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from zerolayer_worker.models.dense import DenseModel

RANK = 8
SCALE = 2.0
"""Of the product beside the frozen matrix: the usual alpha of twice the rank."""


class LoraModel(DenseModel):
    """A frozen model whose layers' matrices each have a product of two small ones beside them."""

    def __init__(self, model: DenseModel, seed: int) -> None:
        """Starts as the base model: the second factor of each product is 0."""
        super().__init__(model.config, model.tensors)
        dice = torch.Generator().manual_seed(seed)
        self._matrices = [
            name.removesuffix(".weight")
            for name, tensor in model.tensors.items()
            if name.startswith("model.layers.") and tensor.dim() > 1
        ]
        self.parameters: dict[str, Tensor] = {}
        for name in self._matrices:
            rows, columns = self.tensors[f"{name}.weight"].shape
            first = torch.randn((RANK, columns), generator=dice) / columns**0.5
            self.parameters |= {f"{name}.a": first, f"{name}.b": torch.zeros((rows, RANK))}
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def project(self, name: str, x: Tensor) -> Tensor:
        """The frozen product and the adapter's."""
        within = linear(x, self.parameters[f"{name}.a"])
        return super().project(name, x) + SCALE * linear(within, self.parameters[f"{name}.b"])

    @torch.no_grad()
    def merged(self) -> dict[str, Tensor]:
        """The model's tensors with the products added, as they would be served."""
        tensors = dict(self.tensors)
        for name in self._matrices:
            product = self.parameters[f"{name}.b"] @ self.parameters[f"{name}.a"]
            tensors[f"{name}.weight"] = tensors[f"{name}.weight"] + SCALE * product
        return tensors

    @property
    def size(self) -> int:
        """Bytes of the adapter in bfloat16, as a bundle's values are kept."""
        return 2 * sum(parameter.numel() for parameter in self.parameters.values())
