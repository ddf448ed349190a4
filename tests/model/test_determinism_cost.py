"""What a step costs that keeps the promise of determinism, beside the same step that does not have to."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from zerolayer_dev.testing.score_bits import KINDS
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.scheduler import DecodeRow, StepPlan
from zerolayer_worker.engine.sequence import Sequence as Running
from zerolayer_worker.models.kv_cache import fixed_tables

pytestmark = [pytest.mark.promise("determinism"), pytest.mark.long, pytest.mark.timeout(1800)]

BATCHES = (1, 4, 8, 16)
LENGTH = 200
ROUNDS = 40
MOST = 1.1
"""Of the time without determinism, from batch 4 on."""

WITH = "deterministic"
WAYS = {
    WITH: SamplingParams(intent=Intent.DETERMINISTIC),
    "without": SamplingParams(temperature=0.0),
    "balanced": SamplingParams(intent=Intent.BALANCED),
}
"""`without` chooses the same tokens with nothing done for determinism; `balanced` is another intent."""


@contextmanager
def runner_of(model: Path, settings: dict[str, Any]) -> Iterator[Runner]:
    config = EngineConfig(
        model,
        "m",
        max_batch_size=max(BATCHES),
        kv_cache_tokens=LENGTH * 32,
        consistency_share=0.0,
        **settings,
    )
    engine = load_engine(config, lambda _stage: None)
    runner = engine._loop._runner
    # What was said before does not matter, as long as it is there.
    runner.cache.keys.normal_()
    runner.cache.values.normal_()
    yield runner
    engine.close()


def step(batch: int, params: SamplingParams, engine_tables: Sequence[Sequence[int]]) -> tuple[StepPlan, Any]:
    """One token for each of so many sequences of `LENGTH` tokens."""
    sequences = {}
    for number in range(batch):
        prompt = tuple((7919 * (number + 1) * (place + 1)) % 49152 for place in range(LENGTH))
        request = GenerationRequest(str(number), prompt, 8, params)
        output = OutputProcessor(None, max_tokens=8, eos_ids=frozenset(), stops=())  # type: ignore[arg-type]
        sequences[str(number)] = Running(request, output, lambda _event: None, seed=number)
    rows = tuple(DecodeRow(str(each), LENGTH - 1, True, list(engine_tables[each])) for each in range(batch))
    return StepPlan(None, rows), sequences


@pytest.mark.parametrize("weights", KINDS)
def test_a_step_costs_about_the_same(weights: str, demo_model: Path, figures: Callable[..., None]) -> None:
    """From batch 4 on, a deterministic step takes at most 1.1 times one with nothing done for it."""
    tables = fixed_tables(max(BATCHES), LENGTH)
    with runner_of(demo_model, KINDS[weights]) as runner:
        filled = runner.row_multiple
        steps = {
            (batch, way): step(batch, params, tables) for batch in BATCHES for way, params in WAYS.items()
        }
        taken: dict[tuple[int, str], list[float]] = defaultdict(list)
        for turn in range(ROUNDS):
            # All ways take turns within milliseconds, so that what else the machine does meets all of them.
            for batch, way in random.Random(turn).sample(sorted(steps), len(steps)):
                runner.row_multiple = 1 if way == "without" else filled
                began = time.perf_counter()
                runner.run(*steps[batch, way])
                taken[batch, way].append(time.perf_counter() - began)
    for batch in BATCHES:
        figures(weights=weights, batch=batch, rows_filled_to=filled, **cost(taken, batch))
    assert [batch for batch in BATCHES if batch >= 4 and cost(taken, batch)["ratio"] > MOST] == []


def cost(taken: dict[tuple[int, str], list[float]], batch: int) -> dict[str, float]:
    """Medians in ms; the ratio is the median over the rounds, each of which was measured together."""
    rounds = zip(taken[batch, WITH], taken[batch, "without"], strict=True)
    medians = {f"{way}_ms": round(1e3 * median(taken[batch, way]), 2) for way in WAYS}
    return {**medians, "ratio": round(median(with_it / without for with_it, without in rounds), 3)}
