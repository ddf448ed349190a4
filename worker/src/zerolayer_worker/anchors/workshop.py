"""Makes a bundle from a file of facts: model, replay, training and the file, one after the other."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import torch

from zerolayer_worker.anchors.bundle import Bundle, norm_shapes, write_bundle
from zerolayer_worker.anchors.facts import FactFile
from zerolayer_worker.anchors.lessons import Curriculum, end_token
from zerolayer_worker.anchors.metadata import BundleMetadata
from zerolayer_worker.anchors.replay import Pace, from_text, written_by
from zerolayer_worker.anchors.training import (
    Guard,
    Progress,
    TrainingError,
    TrainingSettings,
    fit,
    load_late_parts,
)
from zerolayer_worker.common.anchor import BundleError
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.tokenizer import ModelTokenizer

REPLAY_TEXTS: Final = 48
REPLAY_TOKENS: Final = 32

WRITING_SHARE: Final = 0.4
"""Of a time limit: what the base model may take to write the text to replay."""

REPLAY_SHARE: Final = 0.5
"""Of a time limit: what the replay may take altogether, so that there is time to train."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made.

    Attributes:
        facts: what it has to know.
        model: the base model's folder.
        output: the file to write.
        name: the bundle's.
        version: the bundle's.
        settings: how it is trained.
        replay: text on which the model must stay what it was; None lets the base model write it.
        time_limit_s: of replay and training together; None for no limit.
    """

    facts: FactFile
    model: Path
    output: Path
    name: str
    version: str
    settings: TrainingSettings
    replay: Path | None = None
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """The bundle as it was written, the steps behind it, and the seconds of replay and training."""

    bundle: Bundle
    steps: int
    seconds: float


def make(
    order: Order,
    *,
    say: Callable[[str], None],
    on_step: Callable[[Progress], None],
    clock: Callable[[], float] = time.monotonic,
) -> Made:
    """Trains and writes a bundle; the file appears whole or not at all.

    Args:
        order: what to make.
        say: told what begins.
        on_step: told of every step.
        clock: seconds, rising, by which the time limit counts.

    Raises:
        ModelFolderError, ReplayError, ChatTemplateError: what was given can't be used.
        TrainingError: no step fits into the time limit, or training diverged.
        OSError: the file can't be written.
    """
    model, tokenizer = load_dense(order.model), ModelTokenizer(order.model)
    curriculum, created = _curriculum(order, model.config, tokenizer), _now()
    load_late_parts()
    began = clock()
    deadline = _after(began, order.time_limit_s, 1.0)
    say("reading the text to replay" if order.replay else "letting the base model write text to replay")
    pace = Pace(_after(began, order.time_limit_s, WRITING_SHARE), clock, say)
    guard = _guard(order, model, tokenizer, pace)
    replayed_s = clock() - began
    if len(guard.texts) < REPLAY_TEXTS and order.time_limit_s is not None:
        say(f"{len(guard.texts)} texts to replay instead of {REPLAY_TEXTS}: more time guards better")
    say(f"training {len(order.facts.facts)} facts")
    gains = norm_gains(model)
    steps = fit(
        model, gains, curriculum.draw, guard, order.settings,
        deadline=deadline, clock=clock, on_step=on_step,
    )  # fmt: skip
    seconds = clock() - began
    if steps == 0:
        raise TrainingError(
            f"no step fitted into the time limit of {order.time_limit_s} s, as the text to replay took "
            f"{replayed_s:.1f} s; raise --time-limit to several times that"
        )
    metadata = BundleMetadata(
        name=order.name,
        version=order.version,
        base_model_digest=folder_digest(order.model),
        created=created,
        dtype="bfloat16",
        training_data_digest=order.facts.digest,
        evaluation={"steps": float(steps), "steps_planned": float(order.settings.steps)},
    )
    try:
        return Made(write_bundle(order.output, gains, metadata), steps, seconds)
    except BundleError as error:
        raise TrainingError(f"{error.message}; lower --lr") from None


def norm_gains(model: DenseModel) -> dict[str, torch.Tensor]:
    """Makes the model's norm parameters take gradients, in fp32, and returns them."""
    gains = {name: model.tensors[name].float().clone().requires_grad_() for name in norm_shapes(model.config)}
    model.tensors.update(gains)
    return gains


def _curriculum(order: Order, config: ModelConfig, tokenizer: ModelTokenizer) -> Curriculum:
    facts = order.facts.facts
    end = end_token(tokenizer, config.eos_ids)
    curriculum = Curriculum(facts, tokenizer, end, order.settings.seed)
    if (longest := curriculum.longest()) > config.max_positions:
        raise TrainingError(
            f"the longest question with its answer takes {longest} tokens, more than the model's context of "
            f"{config.max_positions}"
        )
    return curriculum


def _guard(order: Order, model: DenseModel, tokenizer: ModelTokenizer, pace: Pace) -> Guard:
    """What has to stay; of fewer texts where time is short."""
    began = pace.clock()
    last = _after(began, order.time_limit_s, REPLAY_SHARE)
    if order.replay is not None:
        texts = from_text(order.replay, tokenizer, REPLAY_TEXTS, REPLAY_TOKENS)
    else:
        texts = written_by(model, tokenizer, REPLAY_TEXTS, REPLAY_TOKENS, order.settings.seed, pace=pace)
    return Guard(model, texts, goes_on=lambda: last is None or pace.clock() < last)


def _after(began: float, limit_s: float | None, share: float) -> float | None:
    """When a share of the time limit is over, by the clock that `began` is of."""
    return None if limit_s is None else began + share * limit_s


def _now() -> datetime:
    """Now, or the time that reproducible builds are told to take for it."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise TrainingError(f"SOURCE_DATE_EPOCH: {given!r} is no number of seconds") from None
