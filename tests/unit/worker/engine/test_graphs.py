"""Captured decode steps, with a stand-in for CUDA that does what a replay does: the same again, in place."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from zerolayer_worker.engine import assemble as module
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.engine.assemble import assemble
from zerolayer_worker.engine.capture import capture_steps, may_capture
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.graphs import Capture, DecodeGraphs, Replay, step_sizes
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.selftest import choose_row_multiple
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
ROWS, PAGE, PAGES = 6, 8, 24


class StandIn:
    """Captures like CUDA: results of a replay are in the tensor that capturing returned."""

    def __init__(self, *, failing: bool = False) -> None:
        self.captured: list[tuple[int, ...]] = []
        self.replays = 0
        self.failing = failing

    def __call__(self, function: Callable[[], Tensor]) -> Replay:
        if self.failing:
            raise RuntimeError("operation not permitted when stream is capturing")
        found = function()
        self.captured.append(tuple(found.shape))

        def replay() -> Tensor:
            self.replays += 1
            return found.copy_(function())

        return replay


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8)), (9, (1, 2, 4, 8, 9))],
)
def test_sizes_are_powers_of_two_up_to_the_rows(rows: int, sizes: tuple[int, ...]) -> None:
    assert step_sizes(rows) == sizes


def graphs(step: Callable[[Tensor], Tensor], capture: Capture) -> DecodeGraphs:
    return DecodeGraphs(step, (1, 2, 4), pages=3, page=PAGE, device=CPU, capture=capture)


def test_captures_the_largest_first_with_rows_that_touch_nothing() -> None:
    seen: list[Tensor] = []
    made = graphs(lambda rows: seen.append(rows.clone()) or rows.clone(), StandIn())
    assert [each.shape for each in seen] == [(5, 4), (5, 2), (5, 1)]
    assert not any(bool(each.any()) for each in seen)
    assert made.sizes == (1, 2, 4)


def test_a_replay_reads_what_the_step_is_about() -> None:
    """Pages of earlier steps may stay behind a row's own, beyond its length."""
    capture = StandIn()
    made = graphs(torch.clone, capture)
    first = made.run([7, 8], [20, 3], [[5, 6, 9], [4]])
    assert first is not None
    assert first.tolist() == [[7, 8], [21, 4], [5, 4], [6, 0], [9, 0]]
    second = made.run([1, 0], [8, 0], [[2, 3, 11]])
    assert second is first
    assert second.tolist() == [[1, 0], [9, 0], [2, 0], [3, 0], [9, 0]]
    assert made.run([1, 2, 3], [0, 0, 0], [[0], [1], [2]]) is None
    assert capture.replays == 2


@pytest.fixture(scope="module")
def make_runner(tiny_folder: Path) -> Callable[[], Runner]:
    def made() -> Runner:
        torch.manual_seed(0)
        config = read_config(tiny_folder)
        tensors = load_tensors(tiny_folder, config, torch.float32, CPU)
        model = Transformer(config, tensors, length=96, storage=Storage(paged=True))
        cache = KvCache(config, PAGES, torch.float32, CPU, page=PAGE)
        cache.keys.zero_()
        cache.values.zero_()
        return Runner(model, cache, TiledSampler(model.head), sizes=step_sizes(ROWS))

    return made


@pytest.mark.parametrize(
    ("multiple", "expected"),
    [(1, [1, 2, 4, 4, 6, 6]), (4, [4, 4, 4, 4, 6, 6]), (6, [6] * 6), (8, [6] * 6)],
)
def test_steps_are_filled_up_to_a_size(
    make_runner: Callable[[], Runner], multiple: int, expected: list[int]
) -> None:
    runner = make_runner()
    runner.row_multiple = multiple
    assert [runner.filled(rows) for rows in range(1, ROWS + 1)] == expected
    assert runner.filled(ROWS + 1) == ROWS + 1 + -(ROWS + 1) % multiple


@given(counts=st.lists(st.integers(1, ROWS), min_size=1, max_size=4), seed=st.integers(0, 999))
@settings(max_examples=6)
@torch.inference_mode()
def test_captured_and_plain_steps_leave_the_same_bits(
    make_runner: Callable[[], Runner], counts: list[int], seed: int
) -> None:
    """In states and pages, over steps of changing numbers of rows."""
    plain, captured = make_runner(), make_runner()
    capture = StandIn()
    captured.graphs = capture_steps(captured, lambda: capture)
    assert not captured.cache.keys.any()
    for number, count in enumerate(counts):
        dice = random.Random(seed + number)
        tables = [[row * 4 + page for page in range(4)] for row in dice.sample(range(ROWS), count)]
        positions = [dice.randrange(4 * PAGE) for _ in range(count)]
        tokens = [dice.randrange(259) for _ in range(count)]
        found = [runner.states(tokens, positions, tables)[:count].clone() for runner in (plain, captured)]
        assert torch.equal(*found)
    assert torch.equal(plain.cache.keys, captured.cache.keys)
    assert torch.equal(plain.cache.values, captured.cache.values)
    assert capture.replays == len(counts)


def test_the_self_test_runs_what_was_captured(make_runner: Callable[[], Runner]) -> None:
    runner, capture = make_runner(), StandIn()
    runner.graphs = capture_steps(runner, lambda: capture)
    assert choose_row_multiple(runner, ROWS).reason is None
    assert capture.captured == [(size, 64) for size in (6, 4, 2, 1)]
    assert capture.replays > ROWS


def test_without_capturing_steps_run_as_they_are_and_the_log_says_why(
    make_runner: Callable[[], Runner], caplog: pytest.LogCaptureFixture
) -> None:
    assert capture_steps(make_runner(), lambda: StandIn(failing=True)) is None
    assert caplog.records[0].message == "decode steps run without CUDA graphs"
    assert caplog.records[0].reason == "operation not permitted when stream is capturing"


@pytest.mark.parametrize(
    ("wanted", "device", "paged", "expected", "reason"),
    [
        (None, "cpu", False, False, None),
        (True, "cpu", False, False, "they are for GPUs"),
        (False, "cuda", True, False, None),
        (None, "cuda", True, True, None),
        (True, "cuda", True, True, None),
        (None, "cuda", False, False, "attention through torch can't be captured"),
    ],
)
def test_what_is_captured_by_default(
    caplog: pytest.LogCaptureFixture,
    wanted: bool | None,
    device: str,
    paged: bool,
    expected: bool,
    reason: str | None,
) -> None:
    runner = SimpleNamespace(model=SimpleNamespace(device=torch.device(device), paged=paged))
    assert may_capture(wanted, runner) is expected  # type: ignore[arg-type]
    assert [record.reason for record in caplog.records] == ([] if reason is None else [reason])


def test_an_engine_of_captured_steps_answers_as_one_through_torch(
    tiny_config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(tiny_config, dtype="float32", kernels="torch")
    request = GenerationRequest("a", tuple(range(3, 40)), 12, SamplingParams(temperature=0.0))
    plain = assemble(config, lambda _stage: None)
    expected = asyncio.run(tokens(plain, request))
    capture, announced = StandIn(), list[str]()
    monkeypatch.setattr(module, "choose_storage", lambda *_: (Storage(paged=True), None))
    monkeypatch.setattr(module, "may_capture", lambda *_: True)
    monkeypatch.setattr(module, "capture_steps", lambda runner: capture_steps(runner, lambda: capture))
    captured = assemble(config, announced.append)
    assert announced == ["load", "compile", "capture", "selftest", "settle"] == list(captured.stages)
    before = capture.replays
    assert asyncio.run(tokens(captured, request)) == expected
    assert capture.replays - before == request.max_tokens - 1
    assert captured.fingerprint != plain.fingerprint


async def tokens(engine: TorchEngine, request: GenerationRequest) -> list[int]:
    events = [event async for event in engine.generate(request)]
    engine.close()
    return [token for event in events if isinstance(event, TextDelta) for token in event.token_ids]
