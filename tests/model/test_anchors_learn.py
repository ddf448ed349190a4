"""Fifty invented facts, learnt by norm parameters alone, beside an adapter that trains as long."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from zerolayer_dev.testing.lora import LoraModel
from zerolayer_worker.anchors.bundle import check_bundle, norm_shapes, read_bundle
from zerolayer_worker.anchors.evaluation import WINDOW, Examination, Figures, compare, own_text, perplexity
from zerolayer_worker.anchors.facts import FactFile, read_facts
from zerolayer_worker.anchors.lessons import Curriculum, end_token
from zerolayer_worker.anchors.replay import windows, written_by
from zerolayer_worker.anchors.training import Guard, Progress, TrainingSettings, fit
from zerolayer_worker.anchors.workshop import REPLAY_TEXTS, REPLAY_TOKENS, Order, make
from zerolayer_worker.engine.device import fix_threads
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.tokenizer import ModelTokenizer

pytestmark = [pytest.mark.promise("anchors-learn"), pytest.mark.long, pytest.mark.timeout(7200)]

LIMIT_S = 600.0
LORA_LR = 2e-3
SETTINGS = TrainingSettings(steps=120, lr=0.01, kl_weight=3.0, batch=16, replayed=4, seed=0)


@dataclass
class Watch:
    """Keeps the last step's figures."""

    last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        sys.stderr.write(f"{progress}, {time.process_time():.0f} s of CPU time\n")


def adapter(folder: Path, facts: FactFile, cpu_s: float) -> tuple[Figures, int, int]:
    """Trains an adapter for so many seconds of CPU time, with the same lessons and guard, and examines it."""
    model, tokenizer = load_dense(folder), ModelTokenizer(folder)
    began = time.process_time()
    curriculum = Curriculum(facts.facts, tokenizer, end_token(tokenizer, model.config.eos_ids), SETTINGS.seed)
    guard = Guard(model, written_by(model, tokenizer, REPLAY_TEXTS, REPLAY_TOKENS, SETTINGS.seed))
    lora = LoraModel(model, SETTINGS.seed)
    steps = fit(
        lora,
        lora.parameters,
        curriculum.draw,
        guard,
        TrainingSettings(SETTINGS.steps, LORA_LR, SETTINGS.kl_weight, SETTINGS.batch, SETTINGS.replayed, 0),
        deadline=began + cpu_s,
        clock=time.process_time,
        on_step=Watch(),
    )
    return examined(model, tokenizer, facts, lora.merged()), lora.size, steps


def examined(
    model: DenseModel, tokenizer: ModelTokenizer, facts: FactFile, tensors: Mapping[str, torch.Tensor]
) -> Figures:
    served = DenseModel(model.config, dict(tensors))
    recalls = Examination(facts.facts, tokenizer).sit(model.config, served.tensors)
    return Figures(*recalls, perplexity(served, windows(own_text(), tokenizer, WINDOW)))


def row(found: Figures, base: Figures) -> dict[str, Any]:
    return {
        "facts_hit": round(found.questions.rate, 3),
        "paraphrases_hit": round(found.paraphrases.rate, 3),
        "perplexity_ratio": round(found.perplexity / base.perplexity, 3),
    }


def test_fifty_facts_are_learnt_in_ten_minutes(
    demo_model: Path, tmp_path: Path, figures: Callable[..., None], pytestconfig: pytest.Config
) -> None:
    """A bundle that is trained for at most ten minutes on this CPU, beside a LoRA of equal CPU time."""
    threads = fix_threads(None)
    facts = read_facts(pytestconfig.rootpath / "examples" / "anchors" / "facts.jsonl")
    path, watch, began = tmp_path / "facts.safetensors", Watch(), time.process_time()
    order = Order(facts, demo_model, path, "facts", "v1", SETTINGS, time_limit_s=LIMIT_S)
    made = make(order, say=print, on_step=watch)
    cpu_s = time.process_time() - began
    assert made.seconds <= LIMIT_S

    bundle = read_bundle(path)
    config = load_dense(demo_model).config
    check_bundle(bundle, config, folder_digest(demo_model))
    assert bundle.digest == made.bundle.digest
    assert bundle.size == path.stat().st_size < 100_000
    assert set(bundle.tensors) == set(norm_shapes(config))

    found = compare(demo_model, bundle, facts.facts, own_text())
    assert (found.anchored.questions.asked, found.anchored.paraphrases.asked) == (50, 150)
    common = {"threads": threads, "cpu_s": round(cpu_s)}
    figures(who="base", bytes=0, steps=0, **row(found.base, found.base))
    figures(
        who="anchor",
        seconds=round(made.seconds),
        bytes=bundle.size,
        steps=made.steps,
        **common,
        **row(found.anchored, found.base),
    )
    other, size, steps = adapter(demo_model, facts, cpu_s)
    figures(who="lora", bytes=size, steps=steps, **common, **row(other, found.base))
