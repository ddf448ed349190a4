"""The benchmark of the sampling step: its ways choose what they say, and its command writes the table."""

import csv
import sys
from pathlib import Path

import pytest
import torch

from zerolayer_bench.sampling import experiment
from zerolayer_bench.sampling.baselines import greedy, plain_top_k, sorted_top_p
from zerolayer_bench.sampling.cli import main
from zerolayer_bench.sampling.heads import StoredHead, language_like


def test_the_baselines_keep_what_their_filters_say() -> None:
    logits = torch.tensor([[0.0, 3.0, 2.9, -1.0]]).expand(300, -1)
    assert set(greedy(logits).tolist()) == {1}
    assert set(sorted_top_p(logits, 1.0, 0.9).tolist()) == {1, 2}
    assert set(sorted_top_p(logits, 1.0, 0.1).tolist()) == {1}
    assert set(plain_top_k(logits, 5.0, 3).tolist()) == {0, 1, 2}


def test_a_stored_head_gives_its_scores() -> None:
    scores = language_like(3, 100)
    head = StoredHead(scores, 32)
    found = torch.cat([tile.scores(torch.zeros(3, 1)) for tile in head.tiles], dim=1)
    assert torch.equal(found, scores)
    assert [(tile.start, tile.width) for tile in head.tiles] == [(0, 32), (32, 32), (64, 32), (96, 4)]


def test_the_command_writes_a_row_for_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(experiment, "VOCABULARIES", (9000,))
    monkeypatch.setattr(experiment, "BATCHES", (1, 2))
    monkeypatch.setattr(sys, "argv", ["bench-sampling", "--out", str(tmp_path), "--repeats", "3"])
    assert main() == 0
    with (tmp_path / "sampling-cpu.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (2 * len(experiment.FUSED) + len(experiment.BASELINES))
    assert all(float(row["median_ms"]) > 0 and row["runs"] == "3" for row in rows)
    assert "sort-based top-p of logits" in capsys.readouterr().out
