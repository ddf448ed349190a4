"""The page, and the raw numbers it is made of."""

from dataclasses import replace
from pathlib import Path

import pytest

from zerolayer_bench.claims import cli
from zerolayer_bench.claims.page import PAGE, RAW, page, render
from zerolayer_bench.claims.plan import PIECES
from zerolayer_bench.claims.record import Piece, add, load, load_all
from zerolayer_bench.claims.rows import CLAIMS

Measured = dict[str, dict[str, Piece]]


def test_every_claim_has_its_row_and_its_section(measured: Measured) -> None:
    text = page(measured)
    for claim in CLAIMS:
        assert f"\n## {claim.title}\n" in text
        assert f"| [{claim.title}](#" in text
    assert "Holds.**" in text
    assert "| the router's file | 32 KB | ≤ 32768 bytes | 2888 bytes | yes |" in text
    assert "| p50, fused over logits | 421 → 389 ms | ≤ 0.92 | 0.27 | yes |" in text
    assert "not measured (prompts are not compressed by this worker)" in text
    assert "not measured yet" not in text


def test_what_is_missing_has_no_mark(measured: Measured) -> None:
    del measured["served"]
    del measured["warm-up"]["2 with"]
    text = page(measured)
    assert text.count("not measured yet") == 4
    assert text.count("\nNot measured yet.\n") == 4
    assert "| 5 of 6 |" in text


def test_the_machine_and_other_work_are_named(measured: Measured) -> None:
    assert "| a machine | 1 | 2 | abc | 2026-12-01 | 0 % |" in page(measured)
    piece = measured["switch"]["conversation"]
    measured["switch"]["conversation"] = replace(piece, about=piece.about | {"others": 0.4})
    assert "| 40 % (shared with other work) |" in page(measured)


def test_pieces_are_added_and_kept_in_the_plans_order(tmp_path: Path, measured: Measured) -> None:
    first, second, third = PIECES["repeats"][:3]
    for label in (third, first, second):
        add(tmp_path / "new", "repeats", label, measured["repeats"][label])
    assert list(load(tmp_path / "new", "repeats")) == [first, second, third]
    assert load_all(tmp_path / "new") == {"repeats": measured["repeats"]}


def test_a_run_goes_on_where_the_last_one_ended(
    tmp_path: Path, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def measure(
        job: dict[str, str], _limit_s: float, _module: str
    ) -> tuple[list[dict[str, object]], str | None]:
        asked.append(job["piece"])
        if job["piece"] == "2 with":
            return [], "ended with status 1"
        piece = measured["warm-up"]["1 without"]
        return [{"about": piece.about, "data": piece.data}], None

    monkeypatch.setattr(cli, "call", measure)
    arguments = ["--out", str(tmp_path), "--only", "warm-up"]
    assert cli.main([*arguments, "--minutes", "0"]) == 0
    assert asked == []
    assert cli.main(arguments) == 1
    assert asked == list(PIECES["warm-up"])
    assert cli.main(arguments) == 1
    assert asked[len(PIECES["warm-up"]) :] == ["2 with"]
    assert "## Warm-up" in (tmp_path / "claims.md").read_text(encoding="utf-8")


def test_the_page_is_generated_from_the_committed_numbers(tmp_path: Path, measured: Measured) -> None:
    for name, pieces in measured.items():
        for label, piece in pieces.items():
            add(tmp_path / RAW, name, label, piece)
    assert render(tmp_path) == {PAGE: page(measured)}


def test_a_piece_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    assert cli.main(["--out", str(tmp_path), "--only", "router-size"]) == 0
    piece = load(tmp_path, "router-size")["file"]
    assert 0 < piece.data["bytes"] <= 32 * 1024
    assert {"machine", "commit", "date", "others"} <= set(piece.about)
