"""Fits the map from states to entropies: ridge regression, in closed form, the same every time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.routing.material import Material, MaterialError
from zerolayer_worker.sampling.entropy import projection
from zerolayer_worker.sampling.router import RANGES, rise, route
from zerolayer_worker.sampling.router_file import RouterFile, RouterMetadata, ranges

MAX_FEATURES: Final = 4096
"""Longer states are projected: the normal equations of more take gigabytes."""

LEAST_TOKENS: Final = 1000
SHRINKAGES: Final = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
"""Candidates for the ridge, as shares of a token's weight; a held-back tenth of the text chooses."""

# Torch's stub gives these no types.
_solve: Callable[[Tensor, Tensor], Tensor] = torch.linalg.solve  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

_HELD_BACK: Final = 10
_SEED: Final = 20


@dataclass(frozen=True, slots=True)
class Trained:
    """Weights `[features]` of state and embedding, fp32, and what the file says of them."""

    hidden: Tensor
    embedding: Tensor
    metadata: RouterMetadata


def train(material: Material, digest: str) -> Trained:
    """Fits a router to a model.

    Args:
        material: of that model; neighbouring rows are of one text.
        digest: the model's.

    Raises:
        MaterialError: there are too few tokens.
    """
    if len(material) < LEAST_TOKENS:
        raise MaterialError(f"{len(material)} tokens of text are too few; give at least {LEAST_TOKENS}")
    size = material.hidden.shape[1]
    metadata = RouterMetadata(
        model_digest=digest,
        hidden_size=size,
        features=min(size, MAX_FEATURES),
        seed=_SEED,
        bias=0.0,
        theta=dict.fromkeys(RANGES, 1.0),
        ranges=ranges(),
        r2=0.0,
        tokens=len(material),
    )
    features = _features(material, metadata)
    # Blocks of rows, not single ones: neighbours of one text say much the same.
    block = torch.arange(len(material)) // max(1, len(material) // (10 * _HELD_BACK))
    held = block % _HELD_BACK == 0
    fitted = _fit(features[~held], material.entropy[~held])
    weights, bias, explained = max(
        ((*fit, r2(features[held] @ fit[0] + fit[1], material.entropy[held])) for fit in fitted),
        key=lambda each: each[2],
    )
    expected = _numbers(features @ weights + bias)
    values = {
        "bias": bias,
        "r2": explained,
        "theta": {intent: _theta(intent, expected) for intent in RANGES},
    }
    hidden, embedding = weights.chunk(2)
    return Trained(hidden, embedding, metadata.model_copy(update=values))


def score(file: RouterFile, material: Material) -> float:
    """R² of a file's router on other texts of its model."""
    features = _features(material, file.metadata)
    weights = torch.cat((file.hidden, file.embedding)).float()
    return r2(features @ weights + file.metadata.bias, material.entropy)


def r2(expected: Tensor, found: Tensor) -> float:
    """Share of the variance of `found` that `expected` explains."""
    found = found.double()
    rest = (found - expected.double()).square().sum()
    return float(1 - rest / (found - found.mean()).square().sum())


def _features(material: Material, metadata: RouterMetadata) -> Tensor:
    """State and embedding side by side, projected where they are long; fp32 `[n, 2 * features]`."""
    matrix = projection(metadata)
    parts = [material.hidden, material.embedding]
    return torch.cat(parts if matrix is None else [part @ matrix.T for part in parts], dim=1)


def _fit(features: Tensor, target: Tensor) -> list[tuple[Tensor, float]]:
    """Weights and bias for each shrinkage; features are shrunk alike, whatever their scale."""
    x, y = features.double(), target.double()
    centre, spread = x.mean(dim=0), x.std(dim=0).clamp(min=1e-9)
    x = (x - centre) / spread
    products, wanted = x.T @ x / len(x), x.T @ (y - y.mean()) / len(x)
    found: list[tuple[Tensor, float]] = []
    for shrinkage in SHRINKAGES:
        ridge = products + shrinkage * torch.eye(x.shape[1], dtype=torch.float64)
        weights = _solve(ridge, wanted) / spread
        found.append((weights.float(), float(y.mean() - centre @ weights)))
    return found


def _theta(intent: Intent, expected: list[float]) -> float:
    """With which the mean temperature over the text is the intent's fixed one.

    So a router moves warmth from where the model is sure to where it is not, and adds none.
    """
    coldest, hottest = RANGES[intent].temperature
    wanted = (route(intent).temperature - coldest) / (hottest - coldest)
    least, most = 1e-3, 999.0
    for _ in range(60):
        middle = (least * most) ** 0.5
        mean = sum(rise(entropy, middle) for entropy in expected) / len(expected)
        least, most = (middle, most) if mean > wanted else (least, middle)
    return round(least, 6)


def _numbers(tensor: Any) -> list[float]:
    """Torch's own stub says nothing about what is in the list."""
    return tensor.tolist()
