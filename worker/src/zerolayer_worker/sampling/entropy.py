"""Steers each row's sampling by the entropy that a linear map expects of its next token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.router import RANGES, steer
from zerolayer_worker.sampling.router_file import RouterFile, RouterMetadata

_PART = 4096


def projection(metadata: RouterMetadata) -> Tensor | None:
    """The seeded random matrix fp32 `[features, hidden_size]` that shortens states; None where none does.

    Products with it keep distances (Johnson-Lindenstrauss). It is made again from its seed wherever it is
    needed, and no step multiplies by it: see `EntropyRouter`.
    """
    if metadata.features == metadata.hidden_size:
        return None
    dice = torch.Generator().manual_seed(metadata.seed)
    shape = (metadata.features, metadata.hidden_size)
    return torch.randn(shape, generator=dice) / metadata.features**0.5


class EntropyRouter:
    """A trained router, laid out for one model.

    A weight of a projected state is a weight of the state itself (w·(Px) = (Pᵀw)·x), and the previous
    token's part is one number per token: both are computed once, so a step costs one dot product per row.
    """

    def __init__(self, file: RouterFile, embedding: Tensor) -> None:
        """`embedding` is the model's, `[vocab, hidden_size]`, on the device where states will be."""
        matrix = projection(file.metadata)
        hidden, previous = file.hidden.float(), file.embedding.float()
        if matrix is not None:
            hidden, previous = matrix.T @ hidden, matrix.T @ previous
        self.digest: str = file.digest
        self._theta = file.metadata.theta
        self._weight = hidden.to(embedding.device)
        weight = previous.to(embedding.device)
        parts = [(part.float() * weight).sum(dim=1) for part in torch.split(embedding, _PART)]
        self._of_token = torch.cat(parts) + file.metadata.bias

    def entropies(self, hidden: Tensor, previous: Sequence[int]) -> Tensor:
        """The expected entropy of each row's next token, fp32 `[rows]`, in nats; may be below 0.

        Each row's sum is its own, so that its bits do not depend on the rows beside it.

        Args:
            hidden: final hidden states, `[rows, hidden_size]`.
            previous: each row's newest token.
        """
        tokens = torch.tensor(previous, device=hidden.device)
        return (hidden.float() * self._weight).sum(dim=1) + self._of_token[tokens]

    def steer(
        self,
        controls: Sequence[SamplingControls],
        intents: Sequence[Intent | None],
        hidden: Tensor,
        previous: Sequence[int],
    ) -> list[SamplingControls]:
        """The controls, with temperature and filters chosen anew for the intents that are steered.

        Rows of a request's own parameters, and the argmax, stay as they are.
        """
        if not any(intent in RANGES for intent in intents):
            return list(controls)
        expected = _numbers(self.entropies(hidden, previous))
        return [
            self._steered(control, intent, entropy)
            for control, intent, entropy in zip(controls, intents, expected, strict=True)
        ]

    def _steered(self, control: SamplingControls, intent: Intent | None, entropy: float) -> SamplingControls:
        if intent is None or intent not in RANGES:
            return control
        chosen = steer(intent, entropy, self._theta[intent])
        return replace(
            control, temperature=chosen.temperature, top_p=chosen.top_p, min_p=chosen.min_p, top_k=0
        )


def _numbers(tensor: Any) -> list[float]:
    """Torch's own stub says nothing about what is in the list."""
    return tensor.tolist()
