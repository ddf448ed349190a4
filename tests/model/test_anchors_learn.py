"""Fifty invented facts, learnt by norm parameters alone, beside an adapter that trains as long."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

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

BUDGET_S = 540.0
"""Seconds of all cores for replay and training, other load aside; the rest of ten minutes is for loading."""

LORA_LR = 2e-3
SETTINGS = TrainingSettings(steps=160, lr=0.01, kl_weight=3.0, batch=16, replayed=4, seed=0)


@dataclass
class Cores:
    """A clock that runs with the work of this process, as fast as a clock on the wall if all cores work."""

    threads: int

    def __call__(self) -> float:
        return time.process_time() / self.threads


def watch(progress: Progress) -> None:
    sys.stderr.write(f"{progress}\n")


@pytest.fixture
def facts(pytestconfig: pytest.Config) -> FactFile:
    return read_facts(pytestconfig.rootpath / "examples" / "anchors" / "facts.jsonl")


def row(found: Figures, base_perplexity: float) -> dict[str, Any]:
    return {
        "facts_hit": round(found.questions.rate, 3),
        "paraphrases_hit": round(found.paraphrases.rate, 3),
        "perplexity_ratio": round(found.perplexity / base_perplexity, 3),
    }


def test_fifty_facts_are_learnt_in_ten_minutes(
    demo_model: Path, tmp_path: Path, facts: FactFile, figures: Callable[..., None]
) -> None:
    """A bundle of fifty invented facts takes less than ten minutes of two cores, and 73 KB."""
    clock, path = Cores(fix_threads(None)), tmp_path / "facts.safetensors"
    order = Order(facts, demo_model, path, "facts", "v1", SETTINGS, time_limit_s=BUDGET_S)
    made = make(order, say=print, on_step=watch, clock=clock)
    assert made.seconds <= BUDGET_S

    bundle = read_bundle(path)
    config = load_dense(demo_model).config
    check_bundle(bundle, config, folder_digest(demo_model))
    assert bundle.digest == made.bundle.digest
    assert bundle.size == path.stat().st_size < 100_000
    assert set(bundle.tensors) == set(norm_shapes(config))

    found = compare(demo_model, bundle, facts.facts, own_text())
    assert (found.anchored.questions.asked, found.anchored.paraphrases.asked) == (50, 150)
    common = {"cores": clock.threads, "budget_s": BUDGET_S, "seconds": round(made.seconds, 1)}
    figures(who="base", **row(found.base, found.base.perplexity))
    figures(
        who="anchor",
        bytes=bundle.size,
        steps=made.steps,
        **common,
        **row(found.anchored, found.base.perplexity),
    )


def test_an_adapter_in_the_same_time(demo_model: Path, facts: FactFile, figures: Callable[..., None]) -> None:
    """Beside it a LoRA of rank 8 on all matrices, with the same lessons, guard and time."""
    clock = Cores(fix_threads(None))
    model, tokenizer = load_dense(demo_model), ModelTokenizer(demo_model)
    pieces = windows(own_text(), tokenizer, WINDOW)
    before, began = perplexity(model, pieces), clock()
    curriculum = Curriculum(facts.facts, tokenizer, end_token(tokenizer, model.config.eos_ids), SETTINGS.seed)
    guard = Guard(model, written_by(model, tokenizer, REPLAY_TEXTS, REPLAY_TOKENS, SETTINGS.seed))
    lora = LoraModel(model, SETTINGS.seed)
    steps = fit(
        lora,
        lora.parameters,
        curriculum.draw,
        guard,
        replace(SETTINGS, lr=LORA_LR),
        deadline=began + BUDGET_S,
        clock=clock,
        on_step=watch,
    )
    seconds = clock() - began
    served = DenseModel(model.config, lora.merged())
    recalls = Examination(facts.facts, tokenizer).sit(model.config, served.tensors)
    found = Figures(*recalls, perplexity(served, pieces))
    figures(who="lora", bytes=lora.size, steps=steps, seconds=round(seconds, 1), **row(found, before))
