import statistics

import pytest
import torch

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.routing import training
from zerolayer_worker.routing.material import Material, MaterialError
from zerolayer_worker.routing.training import LEAST_TOKENS, r2, score, train
from zerolayer_worker.sampling.router import RANGES, route, steer
from zerolayer_worker.sampling.router_file import RouterFile

DIGEST = "sha256:" + "a" * 64
SIZE = 48


def material(seed: int, noise: float = 0.3, rows: int = 3000, size: int = SIZE) -> Material:
    """Entropies that are a linear map of states and embeddings, the same for every seed, and noise."""
    map_dice, dice = torch.Generator().manual_seed(0), torch.Generator().manual_seed(seed)
    weights = torch.randn(2 * size, generator=map_dice) / (2 * size) ** 0.5
    x = torch.randn((rows, 2 * size), generator=dice) * 2 + 1
    noises = torch.randn(rows, generator=dice) * noise
    return Material(x[:, :size], x[:, size:], 3.0 + x @ weights + noises)


def as_file(trained: training.Trained) -> RouterFile:
    return RouterFile(trained.metadata, trained.hidden.half(), trained.embedding.half(), DIGEST, 0)


def test_a_linear_map_is_found() -> None:
    trained = train(material(1), DIGEST)
    # The variance is 2² of the map and 0.3² of the noise.
    best = 4 / (4 + 0.09)
    assert score(as_file(trained), material(2)) == pytest.approx(best, abs=0.03)
    assert trained.metadata.r2 == pytest.approx(best, abs=0.03)
    assert trained.metadata.tokens == 3000


def test_what_can_not_be_learnt_is_not_claimed() -> None:
    """Held-back text, and not what was trained on, says how good the fit is."""
    only_noise = material(1, rows=LEAST_TOKENS)
    shuffled = only_noise.entropy[torch.randperm(LEAST_TOKENS, generator=torch.Generator().manual_seed(3))]
    trained = train(Material(only_noise.hidden, only_noise.embedding, shuffled), DIGEST)
    assert trained.metadata.r2 < 0.1


def test_the_same_text_gives_the_same_router() -> None:
    some, others = train(material(1), DIGEST), train(material(1), DIGEST)
    assert torch.equal(some.hidden, others.hidden)
    assert some.metadata == others.metadata


@pytest.mark.parametrize("intent", RANGES)
def test_the_mean_temperature_is_the_intents_fixed_one(intent: Intent) -> None:
    texts = material(1)
    trained = train(texts, DIGEST)
    x = torch.cat((texts.hidden, texts.embedding), dim=1)
    expected = x @ torch.cat((trained.hidden, trained.embedding)) + trained.metadata.bias
    theta = trained.metadata.theta[intent]
    mean = statistics.fmean(steer(intent, entropy, theta).temperature for entropy in expected.tolist())
    assert mean == pytest.approx(route(intent).temperature, abs=1e-3)


def test_long_states_are_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    """As most of a state's variance lies in few directions, a random projection keeps most of it."""
    monkeypatch.setattr(training, "MAX_FEATURES", 64)
    directions = torch.randn((SIZE, 200), generator=torch.Generator().manual_seed(7))
    lifted = [
        Material(each.hidden @ directions, each.embedding @ directions, each.entropy)
        for each in (material(1), material(2))
    ]
    trained = train(lifted[0], DIGEST)
    assert trained.metadata.features == 64
    assert trained.hidden.shape == (64,)
    assert score(as_file(trained), lifted[1]) > 0.9


def test_too_little_text_is_refused() -> None:
    with pytest.raises(MaterialError, match="999 tokens of text are too few; give at least 1000"):
        train(material(1, rows=999), DIGEST)


@pytest.mark.parametrize(
    ("expected", "found", "share"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0),
        ([2.0] * 3, [1.0, 2.0, 3.0], 0.0),
        ([3.0, 2, 1], [1.0, 2, 3], -3),
    ],
)
def test_r2(expected: list[float], found: list[float], share: float) -> None:
    assert r2(torch.tensor(expected), torch.tensor(found)) == pytest.approx(share)
