"""The demo's model gives a sequence the same bits alone and in every batch."""

from pathlib import Path

import pytest
import torch

from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.selftest import choose_row_multiple
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.tiled import TiledSampler

CPU = torch.device("cpu")
LENGTHS = (1, 7, 63, 64, 65, 128, 200, 333)
BATCHES = (
    (0, 7),
    (7, 0),
    (3, 4),
    (2, 6, 1),
    (5, 4, 3, 2),
    (7, 6, 5, 4, 3, 2, 1, 0),
    (0, 1, 2, 3, 4, 5, 6, 7),
)
TABLES = fixed_tables(8, 384)
STEPS = 3


@pytest.fixture(scope="module")
def runner(demo_model: Path) -> Runner:
    config = read_config(demo_model)
    with torch.inference_mode():
        model = Transformer(config, load_tensors(demo_model, config, torch.float32, CPU), length=384)
        cache = KvCache(config, 8 * 12, torch.float32, CPU)
        made = Runner(model, cache, TiledSampler(model.head))
    assert choose_row_multiple(made, 8).reason is None
    return made


@torch.inference_mode()
def scores(runner: Runner, slots: tuple[int, ...], step: int) -> torch.Tensor:
    """fp32 scores of the whole vocabulary for the slots' next tokens, rows filled up as in serving."""
    missing = -len(slots) % runner.row_multiple
    tokens = [1000 + 37 * slot + step for slot in slots] + [0] * missing
    positions = [LENGTHS[slot] + step for slot in slots] + [0] * missing
    hidden = runner.model.decode(tokens, positions, [TABLES[slot] for slot in slots], runner.cache)
    return torch.cat([tile.scores(hidden) for tile in runner.model.head.tiles], dim=1)[: len(slots)]


@torch.inference_mode()
def test_scores_have_the_same_bits_over_batches_and_lengths(runner: Runner) -> None:
    for slot, length in enumerate(LENGTHS):
        ids = [(7919 * (slot + i + 1)) % 49152 for i in range(length)]
        for start in range(0, length, 128):
            runner.model.prefill(ids[start : start + 128], start, TABLES[slot], runner.cache)
    for step in range(STEPS):
        alone = [scores(runner, (slot,), step)[0] for slot in range(len(LENGTHS))]
        for batch in BATCHES:
            found = scores(runner, batch, step)
            assert [torch.equal(row, alone[slot]) for slot, row in zip(batch, found, strict=True)] == [
                True
            ] * len(batch)
