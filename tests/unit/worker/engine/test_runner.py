from pathlib import Path

import pytest
import torch

from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.scheduler import DecodeRow, PrefillChunk, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.provider import Choice
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
TABLES = fixed_tables(3, 128)


@pytest.fixture
def runner(tiny_folder: Path) -> Runner:
    config = read_config(tiny_folder)
    model = Transformer(config, load_tensors(tiny_folder, config, torch.float32, CPU), length=128)
    cache = KvCache(config, 12, torch.float32, CPU)
    return Runner(model, cache, TiledSampler(model.head))


def sequence(name: str, length: int) -> Sequence:
    output = OutputProcessor(None, max_tokens=50, eos_ids=frozenset(), stops=())  # type: ignore[arg-type]
    ids = tuple(3 + (len(name) * 41 + 17 * i) % 250 for i in range(length))
    params = SamplingParams(temperature=0.0, logprobs=1)
    return Sequence(GenerationRequest(name, ids, 50, params), output, lambda _event: None, seed=1)


def prefill(runner: Runner, one: Sequence, place: int) -> Choice:
    chunk = PrefillChunk(one.request.request_id, 0, one.length, last=True, table=TABLES[place])
    choice = runner.run(StepPlan(chunk, ()), {one.request.request_id: one})[one.request.request_id]
    one.take(choice.token_id)
    return choice


def row(one: Sequence, place: int) -> DecodeRow:
    return DecodeRow(one.request.request_id, one.length - 1, last=True, table=TABLES[place])


def test_an_unfinished_prompt_chooses_no_token(runner: Runner) -> None:
    one = sequence("a", 20)
    assert runner.run(StepPlan(PrefillChunk("a", 0, 10, last=False, table=TABLES[0]), ()), {"a": one}) == {}


def test_prompt_and_answers_share_a_step(runner: Runner) -> None:
    a, b = sequence("a", 20), sequence("bb", 33)
    prefill(runner, a, 1)
    plan = StepPlan(PrefillChunk("bb", 0, 33, last=True, table=TABLES[0]), (row(a, 1),))
    choices = runner.run(plan, {"a": a, "bb": b})
    assert choices.keys() == {"a", "bb"}
    assert choices["bb"] == prefill(runner, sequence("bb", 33), 2)


@pytest.mark.parametrize("multiple", [1, 4, 8])
def test_filling_rows_up_does_not_change_the_choice(runner: Runner, multiple: int) -> None:
    a = sequence("a", 20)
    runner.row_multiple = multiple
    first = prefill(runner, a, 0)
    second = runner.run(StepPlan(None, (row(a, 0),)), {"a": a})["a"]
    runner.row_multiple = 1
    b = sequence("a", 20)
    assert prefill(runner, b, 2) == first
    assert runner.run(StepPlan(None, (row(b, 2),)), {"a": b})["a"] == second


def test_any_provider_fits(runner: Runner) -> None:
    tiled = prefill(runner, sequence("a", 20), 0)
    runner.sampler = NaiveSampler(runner.model.head)
    assert prefill(runner, sequence("a", 20), 0).token_id == tiled.token_id


def test_known_tokens_run_again_to_the_same_choice(runner: Runner) -> None:
    """In rows of one step beside another sequence, none chosen but after the newest."""
    a, b = sequence("a", 20), sequence("bb", 7)
    prefill(runner, a, 0)
    for _ in range(4):
        a.take(runner.run(StepPlan(None, (row(a, 0),)), {"a": a})["a"].token_id)
    expected = runner.run(StepPlan(None, (row(a, 0),)), {"a": a})["a"]
    prefill(runner, b, 1)
    chunk = PrefillChunk("a", 0, 20, last=False, table=TABLES[2])
    assert runner.run(StepPlan(chunk, ()), {"a": a}) == {}
    rows = [DecodeRow("a", position, last=position == 24, table=TABLES[2]) for position in range(20, 25)]
    assert runner.run(StepPlan(None, tuple(rows[:2])), {"a": a}) == {}
    choices = runner.run(StepPlan(None, (row(b, 1), *rows[2:])), {"a": a, "bb": b})
    assert choices.keys() == {"a", "bb"}
    assert choices["a"] == expected
