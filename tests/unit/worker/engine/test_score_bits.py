"""The comparison of scores' bits, and the faults that it has to notice."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from zerolayer_dev.testing.score_bits import Course, Outcome, Round, differing, follow, follow_afresh
from zerolayer_worker.engine import assemble
from zerolayer_worker.engine.block_manager import BlockManager
from zerolayer_worker.engine.selftest import SelfTestResult
from zerolayer_worker.models.linear import Linear

LENGTHS = (3, 16, 17, 40, 70)
SETTINGS: dict[str, Any] = {
    "dtype": "float32",
    "threads": 1,
    "prefill_chunk": 16,
    "max_batch_size": 5,
    "kv_cache_tokens": 256,
}
COURSE = Course([Round("none", 1), Round("evicted", 5, fillers=4), Round("hit", 5)], LENGTHS, SETTINGS)


def different(outcome: Outcome) -> dict[str, int]:
    """How many tokens of each later round have other bits than in the first."""
    reference = outcome.rounds["none"].bits
    return {name: len(differing(reference, seen.bits)) for name, seen in outcome.rounds.items()}


def place_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products depend on a row's place, and the self-test does not see it."""
    original = Linear.__call__

    def crooked(self: Linear, rows: torch.Tensor) -> torch.Tensor:
        return original(self, rows) * (1 + 3e-7 * torch.arange(rows.shape[0])[:, None])

    monkeypatch.setattr(Linear, "__call__", crooked)
    monkeypatch.setattr(assemble, "choose_row_multiple", lambda _runner, _rows: SelfTestResult(1))


def pages_are_found_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    original = BlockManager.find
    monkeypatch.setattr(BlockManager, "find", lambda self, keys: original(self, keys)[::-1])


def pages_are_found_after_they_were_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten is not taken out of the index."""

    def careless(self: BlockManager) -> None:
        key, _ = self._cached.popitem(last=False)
        self._free += self._chunks[key]

    monkeypatch.setattr(BlockManager, "_forget", careless)


def test_an_engine_without_fault_gives_the_same_bits(tiny_folder: Path) -> None:
    outcome = follow(tiny_folder, COURSE)
    assert different(outcome) == {"none": 0, "evicted": 0, "hit": 0}
    assert len(outcome.rounds["none"].bits) == len(LENGTHS) * COURSE.tokens
    assert outcome.rounds["hit"].rows == len(LENGTHS)
    assert outcome.rounds["none"].cached == dict.fromkeys(map(str, LENGTHS), 0)
    assert outcome.rounds["hit"].cached == {"3": 0, "16": 0, "17": 16, "40": 32, "70": 64}


@pytest.mark.parametrize(
    ("fault", "noticed"),
    [
        (place_counts, ("evicted", "hit")),
        (pages_are_found_in_the_wrong_order, ("hit",)),
        (pages_are_found_after_they_were_taken, ("evicted",)),
    ],
)
def test_notices_a_fault(
    tiny_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[pytest.MonkeyPatch], None],
    noticed: Sequence[str],
) -> None:
    fault(monkeypatch)
    found = different(follow(tiny_folder, COURSE))
    assert all(found[name] for name in noticed), found


def test_a_process_of_its_own_gives_the_same_bits(tiny_folder: Path) -> None:
    assert follow_afresh(tiny_folder, [COURSE], at_once=1) == [follow(tiny_folder, COURSE)]


def test_a_process_that_fails_says_why(tiny_folder: Path) -> None:
    with pytest.raises(RuntimeError, match="dtype must be auto"):
        follow_afresh(tiny_folder, [Course([], [], {"dtype": "int1"})], at_once=1)
