from pathlib import Path

import pytest
import torch

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.sampling.entropy import EntropyRouter, projection
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.router import RANGES, steer
from zerolayer_worker.sampling.router_file import RouterFile, RouterMetadata, ranges

THETA = {Intent.BALANCED: 2.0, Intent.CREATIVE: 3.0}
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64)


def router_file(hidden_size: int, features: int | None = None) -> RouterFile:
    dice = torch.Generator().manual_seed(1)
    features = features or hidden_size
    metadata = RouterMetadata(
        model_digest="sha256:" + "a" * 64, hidden_size=hidden_size, features=features, seed=3, bias=2.0,
        theta=THETA, ranges=ranges(), r2=0.5, tokens=1000,
    )  # fmt: skip
    weights = (torch.randn(features, generator=dice).half() / 8 for _ in range(2))
    return RouterFile(metadata, *weights, digest="sha256:0", size=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("hidden_size", "features"), [(64, 64), (576, 576), (576, 32), (5120, 4096)])
def test_it_is_the_linear_map_of_the_file(hidden_size: int, features: int, dtype: torch.dtype) -> None:
    file, dice = router_file(hidden_size, features), torch.Generator().manual_seed(2)
    embedding = torch.randn((300, hidden_size), generator=dice).to(dtype)
    hidden = torch.randn((5, hidden_size), generator=dice).to(dtype)
    previous = [0, 299, 7, 7, 150]
    matrix = projection(file.metadata)
    matrix = torch.eye(hidden_size) if matrix is None else matrix
    expected = (
        hidden.double() @ matrix.double().T @ file.hidden.double()
        + embedding[previous].double() @ matrix.double().T @ file.embedding.double()
        + 2.0
    )
    found = EntropyRouter(file, embedding).entropies(hidden, previous)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("hidden_size", [64, 576, 2048, 8192])
def test_a_rows_entropy_has_the_same_bits_in_every_batch(hidden_size: int) -> None:
    dice = torch.Generator().manual_seed(2)
    router = EntropyRouter(router_file(hidden_size, 32), torch.randn((50, hidden_size), generator=dice))
    hidden = torch.randn((max(SIZES), hidden_size), generator=dice)
    previous = [row % 50 for row in range(max(SIZES))]
    alone = [router.entropies(hidden[row : row + 1], previous[row : row + 1]) for row in range(max(SIZES))]
    for size in SIZES:
        assert torch.equal(router.entropies(hidden[:size], previous[:size]), torch.cat(alone[:size]))
        backwards = router.entropies(hidden[:size].flip(0), previous[:size][::-1]).flip(0)
        assert torch.equal(backwards, torch.cat(alone[:size]))


def test_only_intents_that_vary_are_steered() -> None:
    router = EntropyRouter(router_file(64), torch.zeros(9, 64))
    own = SamplingControls(temperature=0.3, top_k=5, top_p=0.5, seed=1, position=7, logprobs=2)
    intents = [None, Intent.DETERMINISTIC, Intent.BALANCED, Intent.CREATIVE]
    found = router.steer([own] * 4, intents, torch.zeros(4, 64), [1, 2, 3, 4])
    assert found[:2] == [own, own]
    for control, intent in zip(found[2:], intents[2:], strict=True):
        assert intent is not None
        expected = steer(intent, 2.0, THETA[intent])  # states of zeros: the bias alone
        assert (control.temperature, control.top_p, control.min_p) == pytest.approx(
            (expected.temperature, expected.top_p, expected.min_p)
        )
        assert (control.top_k, control.seed, control.position, control.logprobs) == (0, 1, 7, 2)


def test_without_such_a_row_nothing_is_computed() -> None:
    router = EntropyRouter(router_file(64), torch.zeros(9, 64))
    controls = [SamplingControls()]
    # States of a wrong shape would raise.
    assert router.steer(controls, [None], torch.zeros(1, 3), [1]) == controls
    assert router.steer(controls, [Intent.DETERMINISTIC], torch.zeros(1, 3), [1]) == controls


def test_the_intents_that_vary_are_those_with_a_range() -> None:
    assert RANGES.keys() == {Intent.BALANCED, Intent.CREATIVE}


def test_a_projection_is_the_same_every_time(tmp_path: Path) -> None:
    metadata = router_file(256, 32).metadata
    some, others = projection(metadata), projection(metadata)
    assert some is not None
    assert others is not None
    assert torch.equal(some, others)
    vectors = torch.randn(256, 50)
    ratio = (some @ vectors).norm(dim=0) / vectors.norm(dim=0)
    assert ratio.mean() == pytest.approx(1, abs=0.15)
