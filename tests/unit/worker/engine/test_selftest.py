from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.selftest import choose_row_multiple, rows_are_independent
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.linear import Linear
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
ROWS = 9


@pytest.fixture
def runner(tiny_folder: Path) -> Runner:
    config = read_config(tiny_folder)
    model = Transformer(config, load_tensors(tiny_folder, config, torch.float32, CPU), length=128)
    cache = KvCache(config, 36, torch.float32, CPU)
    return Runner(model, cache, TiledSampler(model.head))


def tamper(monkeypatch: pytest.MonkeyPatch, good: int | None, by: float = 1e-6) -> None:
    """Products whose rows are the same only where their number is a multiple of `good`."""
    original = Linear.__call__

    def crooked(self: Linear, rows: torch.Tensor) -> torch.Tensor:
        result = original(self, rows)
        if good is not None and rows.shape[0] % good == 0:
            return result
        return result * (1 + by * rows.shape[0])

    monkeypatch.setattr(Linear, "__call__", crooked)


def test_a_library_with_independent_rows_needs_no_filling(runner: Runner) -> None:
    assert rows_are_independent(runner, ROWS)
    assert choose_row_multiple(runner, ROWS).reason is None


@pytest.mark.parametrize(("good", "expected"), [(4, 4), (8, 8), (ROWS, ROWS)])
def test_takes_the_smallest_multiple_that_works(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, good: int, expected: int
) -> None:
    tamper(monkeypatch, good)
    result = choose_row_multiple(runner, ROWS)
    assert (result.row_multiple, result.reason) == (expected, None)
    assert runner.row_multiple == expected


def test_says_so_where_none_works(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that depends on its own place can't be helped by filling up."""
    original = Linear.__call__

    def crooked(self: Linear, rows: torch.Tensor) -> torch.Tensor:
        return original(self, rows) * (1 + 1e-6 * torch.arange(rows.shape[0])[:, None])

    monkeypatch.setattr(Linear, "__call__", crooked)
    result = choose_row_multiple(runner, ROWS)
    assert result.reason is not None
    assert result.row_multiple == ROWS


def test_a_difference_in_the_last_bits_is_enough(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper(monkeypatch, None, by=3e-7)
    assert not rows_are_independent(runner, ROWS)


def test_a_prompt_that_depends_on_its_pages_is_noticed(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Transformer.prefill

    def crooked(
        self: Transformer, token_ids: Sequence[int], start: int, table: Sequence[int], cache: KvCache
    ) -> torch.Tensor:
        return original(self, token_ids, start, table, cache) + 1e-6 * table[0]

    monkeypatch.setattr(Transformer, "prefill", crooked)
    assert not rows_are_independent(runner, ROWS)
