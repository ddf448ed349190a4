"""The page of figures, from recorded numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from zerolayer_bench.worker.cases import (
    Agreement,
    Answer,
    Cell,
    Contender,
    Missing,
    Results,
    Sample,
    read,
    write,
)
from zerolayer_bench.worker.report import page
from zerolayer_dev.paths import repo_root

RECORDED = repo_root() / "docs" / "benchmarks" / "results.json"


@pytest.fixture
def results() -> Results:
    ours, peer = Contender("zerolayer", "fp32"), Contender("transformers", "fp32")
    cell = Cell(1, 32, 3)

    def sample(who: Contender, turn: int, gap: float) -> Sample:
        return Sample(
            who,
            cell,
            turn,
            (Answer((0.1, round(0.1 + gap, 6), round(0.1 + 2 * gap, 6)), (7, 8, 9)),),
            2.5,
            600.0,
            0.3,
            0.0,
        )

    return Results(
        machine={
            "machine": "a machine, 2 CPUs", "flags": ["avx2"], "l3_mib": 32.0, "kernel": "6", "threads": 2,
            "versions": {"torch": "2.15"}, "commit": "abc", "date": "2026-11-30", "rounds": 2,
            "bandwidth": 2e9, "weight_bytes": {"fp32": 100_000_000}, "digests": {},
        },
        samples=tuple(sample(who, turn, gap) for who, gap in ((ours, 0.1), (peer, 0.2)) for turn in (0, 1)),
        missing=(Missing(Contender("openvino", "int8"), 8, "not done after 900 s"),),
        agreements=(Agreement(ours, cell, 3),),
        profile={"zerolayer fp32": "aten::mm  90 %"},
    )  # fmt: skip


def test_what_is_written_is_read(results: Results, tmp_path: Path) -> None:
    write(results, tmp_path / "new" / "results.json")
    assert read(tmp_path / "new" / "results.json") == results


def test_every_part_is_on_the_page(results: Results) -> None:
    text = page(results)
    assert "| zerolayer fp32 | 100 | 10.0 | 50 % | 10.0 | 100.0 / 100.0 | 600 | 2.5 | 0.3 |" in text
    assert "make bench-worker OUT=DIR ARGS='--batch 1 --prompt 32 --new 3 --rounds 2'" in text
    assert "| fp32 | 1 | 32 | 2.00 (transformers) | 1.00 (transformers) | 1.67 (transformers) | yes |" in text
    assert "- openvino int8, batch 8: not done after 900 s" in text
    assert "| zerolayer fp32 | 3 to 3 |" in text
    assert "aten::mm  90 %" in text


def test_what_was_measured_beside_other_work_is_marked_and_not_judged(results: Results) -> None:
    disturbed = tuple(replace(sample, stolen=0.2) for sample in results.samples)
    text = page(replace(results, samples=disturbed))
    assert "| zerolayer fp32* |" in text
    assert "| fp32* | 1 | 32 | 2.00 (transformers) |" in text
    assert "| not judged: disturbed |" in text
    assert "| yes |" not in text


@pytest.mark.skipif(not RECORDED.exists(), reason="no run is recorded")
def test_the_committed_page_is_made_of_the_committed_numbers() -> None:
    assert (repo_root() / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(read(RECORDED))
