"""The loop on a model that learns within a second."""

import itertools
from pathlib import Path

import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.anchors.lessons import Lesson
from zerolayer_worker.anchors.training import (
    Guard,
    Progress,
    TrainingError,
    TrainingSettings,
    fact_loss,
    fit,
    rate,
)
from zerolayer_worker.anchors.workshop import norm_gains
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.packing import pack

FACTS = (Lesson((9, 8, 7, 100, 101), 3), Lesson((9, 8, 6, 110, 111, 112), 3))
KEPT = tuple(Lesson((9, 20 + i, 30 + i, 40 + i, 50 + i), 2) for i in range(3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


def settings(steps: int = 40, lr: float = 0.02, kl_weight: float = 2.0) -> TrainingSettings:
    return TrainingSettings(steps=steps, lr=lr, kl_weight=kl_weight, batch=2, replayed=2, seed=7)


def train(
    folder: Path, wanted: TrainingSettings, *, deadline: float | None = None, tick: float = 1.0
) -> tuple[DenseModel, Guard, list[Progress], int]:
    """A clock that moves by `tick` each time it is looked at."""
    model, ticks, seen = load_dense(folder), itertools.count(), list[Progress]()
    guard = Guard(model, KEPT, together=2)
    gains = norm_gains(model)
    steps = fit(
        model,
        gains,
        lambda count: FACTS[:count],
        guard,
        wanted,
        deadline=deadline,
        clock=lambda: next(ticks) * tick,
        on_step=seen.append,
    )
    return model, guard, seen, steps


def drift(model: DenseModel, guard: Guard) -> float:
    return float(guard.loss(model, range(len(KEPT))).detach())


@torch.inference_mode()
def test_the_loss_is_that_of_each_token_after_those_before_it(folder: Path) -> None:
    model = load_dense(folder)

    def loss(ids: tuple[int, ...]) -> float:
        return -float(model.logprobs(model.hidden(pack([ids[:-1]]))[-1:])[0, ids[-1]])

    each = [loss(fact.ids[: end + 1]) for fact in FACTS for end in range(fact.start, len(fact.ids))]
    assert float(fact_loss(model, FACTS)) == pytest.approx(sum(each) / len(each), rel=1e-4)


def test_facts_are_learnt(folder: Path) -> None:
    before = float(fact_loss(load_dense(folder), FACTS))
    model, _, seen, steps = train(folder, settings())
    assert steps == len(seen) == 40
    assert seen[0].fact_loss == pytest.approx(before, rel=1e-4)
    assert float(fact_loss(model, FACTS).detach()) < before / 4


def test_the_guard_is_nothing_for_the_base_model_and_keeps_the_trained_one_near_it(folder: Path) -> None:
    model = load_dense(folder)
    assert abs(drift(model, Guard(model, KEPT))) < 1e-5
    free, guard, _, _ = train(folder, settings(kl_weight=0.0))
    held, _, _, _ = train(folder, settings(kl_weight=5.0))
    assert drift(held, guard) < 0.7 * drift(free, guard)


def test_the_guard_compares_each_text_with_itself(folder: Path) -> None:
    """Whatever other texts were beside it when the base model read it."""
    model = load_dense(folder)
    guard = Guard(model, KEPT, together=2)
    for chosen in ([0], [2, 0], [1, 2, 0]):
        assert abs(float(guard.loss(model, chosen))) < 1e-5


def test_nothing_but_norms_is_changed(folder: Path) -> None:
    base, model = load_dense(folder), train(folder, settings(steps=3))[0]
    changed = {name for name, tensor in model.tensors.items() if not torch.equal(tensor, base.tensors[name])}
    assert len(changed) == 5
    assert all(name.endswith("norm.weight") for name in changed)


def test_the_same_seed_gives_the_same_bits(folder: Path) -> None:
    first, again = (train(folder, settings(steps=5))[0] for _ in range(2))
    assert all(torch.equal(first.tensors[name], again.tensors[name]) for name in first.tensors)


@pytest.mark.parametrize(
    ("deadline", "steps"),
    [(-1.0, 0), (0.5, 0), (1.5, 1), (3.0, 1), (4.5, 2), (1000.0, 40)],
)
def test_no_step_begins_that_would_end_after_the_deadline(folder: Path, deadline: float, steps: int) -> None:
    """The clock says 0 when training begins, 1 before the first step, 2 after it, 3 before the next one."""
    assert train(folder, settings(), deadline=deadline)[3] == steps


def test_a_loss_that_is_no_number_ends_it(folder: Path) -> None:
    with pytest.raises(TrainingError, match="lower --lr"):
        train(folder, settings(lr=1e30))


def test_the_rate_rises_and_falls() -> None:
    rates = [rate(step, step / 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.2, abs=0.01)
    assert max(rates) == pytest.approx(rates[4])
    assert all(a > b for a, b in itertools.pairwise(rates[4:]))
    assert rates[-1] == pytest.approx(0.1, abs=0.01)
