"""The samplers' distributions, and the faults that these very tests have to notice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from zerolayer_dev.testing.chi_square import holm_rejects, p_value
from zerolayer_dev.testing.sampling_cases import (
    disagreements,
    draws,
    native_choosing,
    penalties,
    sampling_case,
)
from zerolayer_worker.models.head import HeadTile, LmHead
from zerolayer_worker.sampling import drawing, filtered, noise, tiled, unfiltered
from zerolayer_worker.sampling.naive import NaiveSampler, kept_count, penalised
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.penalties import Penalties
from zerolayer_worker.sampling.provider import Choice, Head, SamplerProvider, SamplingControls, Tile
from zerolayer_worker.sampling.tiled import TiledSampler

TEMPERATURES = (0.3, 0.7, 1.0, 1.5)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"top_k": 9},
    {"top_p": 0.8},
    {"min_p": 0.1},
    penalties(range(0, 75, 2), [*range(0, 75, 3), 4, 4], repetition=1.4, presence=1.5, frequency=0.5),
)
TILE = 32


@pytest.fixture(scope="module")
def weight() -> torch.Tensor:
    return torch.randn(75, 8, generator=torch.Generator().manual_seed(5)) * 0.7


@pytest.fixture(scope="module")
def hidden() -> torch.Tensor:
    return torch.randn(1, 8, generator=torch.Generator().manual_seed(6))


def expected(weight: torch.Tensor, hidden: torch.Tensor, temperature: float, **filters: Any) -> torch.Tensor:
    """Filtered softmax of the penalised scores, straight from the definition."""
    control = SamplingControls(temperature=temperature, **filters)
    scores = penalised((hidden.double() @ weight.double().T)[0], control)
    probabilities = torch.softmax(scores / temperature, dim=0)
    order = probabilities.sort(descending=True, stable=True).indices
    kept = order[: kept_count(probabilities[order], control)]
    result = torch.zeros_like(probabilities)
    result[kept] = probabilities[kept] / probabilities[kept].sum()
    return result


def p_values(
    sampler: SamplerProvider, weight: torch.Tensor, hidden: torch.Tensor, count: int = 3000
) -> list[float]:
    return [
        p_value(
            draws(sampler, hidden, count, rows=500, temperature=t, **filters),
            expected(weight, hidden, t, **filters),
        )
        for t in TEMPERATURES
        for filters in FILTERS
    ]


def native_sampler(head: Head) -> NativeSampler:
    return NativeSampler(head, native_choosing())


@pytest.mark.parametrize(
    ("provider", "count"), [(NaiveSampler, 250), (TiledSampler, 5000), (native_sampler, 5000)]
)
def test_draws_follow_the_filtered_softmax(
    provider: Callable[[Head], SamplerProvider], count: int, weight: torch.Tensor, hidden: torch.Tensor
) -> None:
    assert holm_rejects(p_values(provider(LmHead(weight, TILE)), weight, hidden, count)) == []


# Faults. Each is a sampler that is wrong in one way; both the comparison with the oracle and, where the
# fault changes the distribution, the chi-square tests have to see it.


@dataclass
class CrookedHead:
    """A head whose tiles are not where they say, or not all there."""

    inner: Head
    shift: int = 0
    dropped: int = 0

    @property
    def vocab_size(self) -> int:
        return self.inner.vocab_size

    @property
    def tiles(self) -> Sequence[Tile]:
        count = max(1, len(self.inner.tiles) - self.dropped)
        tiles = [tile for tile in self.inner.tiles[:count] if isinstance(tile, HeadTile)]
        return [replace(tile, start=max(0, tile.start - self.shift)) for tile in tiles]


class LatePenalties(Penalties):
    """Penalises scores that are over the temperature already."""

    def __init__(self, controls: Sequence[SamplingControls], device: torch.device) -> None:
        super().__init__(controls, device)
        self._temperature = torch.tensor([[c.temperature or 1.0] for c in controls], device=device)

    def apply(self, scores: torch.Tensor, start: int) -> torch.Tensor:
        return super().apply(scores / self._temperature, start) * self._temperature


FAULTS = (
    *("shared-noise", "temperature-after-top-p", "penalty-after-temperature"),
    *("tile-edge", "last-tile", "noise-scale"),
)


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CrookedHead:
    judge, gumbel = filtered.judge, unfiltered.gumbel
    crooked = CrookedHead(LmHead(torch.zeros(1, 1)))
    if request.param == "shared-noise":
        monkeypatch.setattr(noise, "stream_key", lambda _seed, _position: 42)
    elif request.param == "penalty-after-temperature":
        monkeypatch.setattr(tiled, "Penalties", LatePenalties)
    elif request.param == "temperature-after-top-p":
        monkeypatch.setattr(
            filtered,
            "judge",
            lambda scaled, total, controls, size: judge(
                scaled * torch.tensor([c.temperature for c in controls])[:, None], total, controls, size
            ),
        )
    elif request.param == "tile-edge":
        crooked.shift = 1
    elif request.param == "last-tile":
        crooked.dropped = 1
    else:
        for module in (drawing, unfiltered):
            monkeypatch.setattr(module, "gumbel", lambda keys, ids: gumbel(keys, ids) * 0.9)
    return crooked


def crooked_choices(crooked: CrookedHead, case_seed: int) -> tuple[list[Choice], list[Choice]]:
    case = sampling_case(case_seed)
    crooked.inner = case.head(64)
    found = TiledSampler(crooked).sample(case.hidden, case.controls)
    return found, NaiveSampler(case.head(8192)).sample(case.hidden, case.controls)


def test_the_comparison_notices_every_fault(fault: CrookedHead) -> None:
    assert sum(disagreements(*crooked_choices(fault, seed)) for seed in range(60)) > 0


@pytest.mark.promise("exactness")
def test_chi_square_notices_every_fault(
    fault: CrookedHead, weight: torch.Tensor, hidden: torch.Tensor
) -> None:
    """The same chi-square test fails for six samplers that are each wrong in one way."""
    fault.inner = LmHead(weight, TILE)
    assert holm_rejects(p_values(TiledSampler(fault), weight, hidden))
