"""The loop that teaches facts and keeps everything else: Adam on a few parameters of a frozen model."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from zerolayer_worker.anchors.lessons import Lesson
from zerolayer_worker.models.dense import DenseModel
from zerolayer_worker.models.packing import Pack, pack

WARMUP_STEPS: Final = 5
FINAL_SHARE: Final = 0.1


class TrainingError(ValueError):
    """Training can't succeed; the message names the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How training runs.

    Attributes:
        steps: of the optimiser.
        lr: Adam's learning rate at its highest; it rises over the first steps and falls to a tenth.
        kl_weight: weight of the guard, in nats per replayed token, beside the facts' nats per token.
        batch: facts per step.
        replayed: replayed texts per step.
        seed: of every choice.
    """

    steps: int
    lr: float
    kl_weight: float
    batch: int
    replayed: int
    seed: int


@dataclass(frozen=True, slots=True)
class Progress:
    """One step's figures: losses in nats per token, seconds since training began."""

    step: int
    fact_loss: float
    guard_loss: float
    seconds: float


class Guard:
    """The base model's final hidden states over replayed texts, from which its distributions are computed."""

    def __init__(
        self,
        model: DenseModel,
        texts: Sequence[Lesson],
        *,
        together: int = 8,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Runs the model, which has to be the base model still, over `texts`, `together` at a time.

        Once `goes_on` says no, what is left of the texts is left out.
        """
        self.texts = texts
        self._states: list[Tensor] = []
        with torch.no_grad():
            for first in range(0, len(texts), together):
                if first and not goes_on():
                    self.texts = texts[:first]
                    return
                some = texts[first : first + together]
                packed = pack([each.ids for each in some])
                states = model.hidden(packed)
                self._states += [states[_predicting(packed, i, each)] for i, each in enumerate(some)]

    def loss(self, model: DenseModel, chosen: Sequence[int]) -> Tensor:
        """Mean divergence KL(base ‖ model) over the chosen texts' tokens, in nats."""
        some = [self.texts[index] for index in chosen]
        packed = pack([each.ids for each in some])
        rows = torch.cat([_predicting(packed, i, each) for i, each in enumerate(some)])
        with torch.no_grad():
            base = model.logprobs(torch.cat([self._states[index] for index in chosen]))
        trained = model.logprobs(model.hidden(packed).index_select(0, rows))
        return (base.exp() * (base - trained)).sum(dim=-1).mean()


def fact_loss(model: DenseModel, lessons: Sequence[Lesson]) -> Tensor:
    """Mean negative log-likelihood of the lessons' tokens, in nats."""
    packed = pack([each.ids for each in lessons])
    rows = torch.cat([_predicting(packed, i, each) for i, each in enumerate(lessons)])
    targets = torch.tensor([token for each in lessons for token in each.ids[each.start :]])
    logprobs = model.logprobs(model.hidden(packed).index_select(0, rows))
    return -logprobs.gather(1, targets[:, None]).mean()


def load_late_parts() -> None:
    """Has torch load what it loads with the first optimiser, up to half a minute if the machine is busy."""
    probe = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.Adam([probe])
    _add_gradients(probe.sum())
    optimiser.step()  # pyright: ignore[reportUnknownMemberType]  # its argument is untyped


def fit(
    model: DenseModel,
    parameters: Mapping[str, Tensor],
    draw: Callable[[int], Sequence[Lesson]],
    guard: Guard,
    settings: TrainingSettings,
    *,
    deadline: float | None,
    clock: Callable[[], float],
    on_step: Callable[[Progress], None],
) -> int:
    """Trains `parameters`, which `model` has to use already, and returns the number of steps done.

    Args:
        model: the frozen model.
        parameters: leaf tensors that take gradients.
        draw: gives so many lessons.
        guard: what has to stay.
        settings: see there.
        deadline: no step is begun that would end later, by `clock`; None for no limit.
        clock: seconds, rising.
        on_step: told of every step.

    Raises:
        TrainingError: a loss is no number any more.
    """
    dice = random.Random(settings.seed)  # noqa: S311 - repeatable on purpose
    optimiser = torch.optim.Adam(parameters.values(), lr=settings.lr)
    began, longest = clock(), 0.0
    for step in range(settings.steps):
        before = clock()
        if deadline is not None and before + longest > deadline:
            return step
        for group in optimiser.param_groups:
            group["lr"] = settings.lr * rate(step, _share(step / settings.steps, began, before, deadline))
        optimiser.zero_grad()
        # One after the other: the memory of one is free before the other needs it.
        learnt = _add_gradients(fact_loss(model, draw(settings.batch)))
        chosen = dice.sample(range(len(guard.texts)), min(settings.replayed, len(guard.texts)))
        kept = _add_gradients(guard.loss(model, chosen), settings.kl_weight)
        if not math.isfinite(learnt + kept):
            raise TrainingError(f"step {step + 1}: the loss is no number any more; lower --lr")
        optimiser.step()  # pyright: ignore[reportUnknownMemberType]  # its argument is untyped
        now = clock()
        # The first step also loads what torch loads late, and says little of the others.
        longest = max(longest if step > 1 else 0.0, now - before)
        on_step(Progress(step + 1, learnt, kept, now - began))
    return settings.steps


def rate(step: int, share: float) -> float:
    """The share of the learning rate at a step, `share` of training being over.

    A short rise, then half a cosine down to a tenth.
    """
    risen = min(1.0, (step + 1) / WARMUP_STEPS)
    fallen = 0.5 + 0.5 * math.cos(math.pi * share)
    return risen * (FINAL_SHARE + (1 - FINAL_SHARE) * fallen)


def _share(of_steps: float, began: float, now: float, deadline: float | None) -> float:
    """How much of training is over, by steps or by time, whichever ends it first."""
    if deadline is None or deadline <= began:
        return of_steps
    return max(of_steps, (now - began) / (deadline - began))


def _add_gradients(loss: Tensor, weight: float = 1.0) -> float:
    """Adds the weighted loss's gradients to the parameters' and returns the loss itself."""
    (weight * loss).backward()  # pyright: ignore[reportUnknownMemberType]  # its arguments are untyped
    return loss.item()


def _predicting(packed: Pack, index: int, lesson: Lesson) -> Tensor:
    """The rows whose prediction counts: each one before the token that it predicts."""
    return packed.rows(index, lesson.start - 1, len(lesson.ids) - 1)
