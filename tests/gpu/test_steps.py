"""Decode steps on a GPU: captured and not, in any company, without the host waiting."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from zerolayer_worker.engine.capture import capture_steps
from zerolayer_worker.engine.graphs import step_sizes
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.selftest import choose_row_multiple
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.choice import sampler_for

pytestmark = pytest.mark.gpu

LENGTH = 256
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])


@torch.inference_mode()
def made(folder: Path, dtype: torch.dtype, rows: int) -> Runner:
    device = torch.device("cuda")
    config = read_config(folder)
    tensors = load_tensors(folder, config, dtype, device)
    weight = tensors["lm_head.weight"]
    model = Transformer(config, tensors, length=LENGTH, storage=Storage(paged=True))
    cache = KvCache(config, rows * len(fixed_tables(1, LENGTH)[0]), dtype, device)
    cache.keys.zero_()
    cache.values.zero_()
    return Runner(model, cache, sampler_for(model.head, weight), sizes=step_sizes(rows))


@contextmanager
def nobody_waits() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.promise("gpu")
@DTYPES
@torch.inference_mode()
def test_captured_steps_have_the_bits_of_plain_ones(
    random_model: Path, dtype: torch.dtype, figures: Callable[..., None]
) -> None:
    """Steps that are replayed from CUDA graphs leave the bits of plain ones, in states and pages."""
    rows, compared = 8, 0
    plain, captured = (made(random_model, dtype, rows) for _ in range(2))
    captured.graphs = capture_steps(captured)
    assert captured.graphs is not None
    assert captured.graphs.sizes == (1, 2, 4, 8)
    places = fixed_tables(rows, LENGTH)
    for step in range(40):
        dice = random.Random(step)
        tables = dice.sample(places, 1 + step % rows)
        positions = [dice.randrange(LENGTH) for _ in tables]
        tokens = [dice.randrange(259) for _ in tables]
        found = [each.states(tokens, positions, tables)[: len(tables)].clone() for each in (plain, captured)]
        assert torch.equal(*found)
        compared += len(tables)
    assert torch.equal(plain.cache.keys, captured.cache.keys)
    assert torch.equal(plain.cache.values, captured.cache.values)
    figures(dtype=str(dtype), rows=compared, device=torch.cuda.get_device_name())


@pytest.mark.promise("gpu")
@DTYPES
@pytest.mark.parametrize("rows", [1, 8, 32])
def test_a_sequence_has_its_bits_in_any_batch(
    random_model: Path, dtype: torch.dtype, rows: int, figures: Callable[..., None]
) -> None:
    """Decoding through graphs gives the same bits alone, in any batch and in any pages."""
    runner = made(random_model, dtype, rows)
    runner.graphs = capture_steps(runner)
    found = choose_row_multiple(runner, rows)
    figures(dtype=str(dtype), rows=rows, filled_up_to_at_least=found.row_multiple)
    assert found.reason is None


@DTYPES
@torch.inference_mode()
def test_the_host_waits_for_no_step(random_model: Path, dtype: torch.dtype) -> None:
    runner = made(random_model, dtype, 4)
    table = fixed_tables(1, LENGTH)[0]
    for graphs in (None, capture_steps(runner)):
        runner.graphs = graphs
        for _ in range(2):  # what is built at first use may wait
            runner.model.prefill(range(100), 0, table, runner.cache)
            runner.states([3], [100], [table])
        with nobody_waits():
            runner.model.prefill(range(100), 0, table, runner.cache)
            runner.states([3], [100], [table])
