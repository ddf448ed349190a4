"""`python -m zerolayer_bench.autoscaling`, as a user runs it."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from zerolayer_bench.autoscaling.report import COLUMNS


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zerolayer_bench.autoscaling", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Ten minutes in each format: a step up and down again."""
    rates = [4] * 40 + [12] * 40 + [4] * 40
    lines = [f"{5 * step + 5 * nth / rate},500,100" for step, rate in enumerate(rates) for nth in range(rate)]
    for name, header, rows in (
        ("counts", "requests_per_5s", rates),
        ("requests", "arrival_s,input_tokens,output_tokens", lines),
    ):
        text = "\n".join([header, *map(str, rows), ""])
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_table_and_pictures(traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = bench("--traces", traces, "--out", out)

    assert ran.returncode == 0, ran.stderr
    with (out / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["trace"] for row in rows} == {"counts", "requests"}
    assert {row["cold_start_s"] for row in rows} == {"30", "90", "240"}
    names = {"ours", "fixed-300s", "fixed-0s", "knative-kpa", "keda-defaults", "aibrix-apa", "clairvoyant"}
    assert names | {"target-0.50-300s", "target-0.50-ours"} <= {row["policy"] for row in rows}
    assert all(f"{row['trace']} " in ran.stdout for row in rows)
    for row in rows:
        if row["policy"] == "fixed-300s" and row["cold_start_s"] == "90":
            assert float(row["replica_hours"]) * 3600 / 600 == pytest.approx(10, rel=0.03)
        if row["policy"].startswith("fixed-"):
            assert float(row["below_frontier_pct"]) <= 1e-3
    assert "| counts | 90 s | ours |" in (out / "summary.md").read_text()
    for name in ("counts", "requests"):
        assert (out / f"frontier-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_figures_every_time(traces: Path, tmp_path: Path) -> None:
    (traces / "requests.csv.gz").unlink()
    written = []
    for name in ("one", "other"):
        assert bench("--traces", traces, "--out", tmp_path / name).returncode == 0
        written.append((tmp_path / name / "summary.csv").read_text())

    assert written[0] == written[1]


def test_no_traces_is_said(tmp_path: Path) -> None:
    ran = bench("--traces", tmp_path, "--out", tmp_path / "out")

    assert ran.returncode == 2
    assert "no *.csv.gz" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_what_is_no_trace_is_named_and_the_others_are_replayed_however_short(tmp_path: Path) -> None:
    header = b"arrival_s,input_tokens,output_tokens\n"
    for name, content in (
        ("broken", gzip.compress(b"requests_per_5s\nmany\n")),
        ("empty", b""),
        ("single", gzip.compress(header + b"7,500,100\n")),
        ("unsorted", gzip.compress(header + b"90,0,1\n0,0,0\n")),
    ):
        (tmp_path / f"{name}.csv.gz").write_bytes(content)
    ran = bench("--traces", tmp_path, "--out", tmp_path / "out")

    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert "broken.csv.gz" in ran.stderr
    assert "empty.csv.gz" in ran.stderr
    assert "single: 1 requests in 0.0 h, too short to judge by" in ran.stderr
    with (tmp_path / "out" / "summary.csv").open(newline="") as file:
        assert {row["trace"] for row in csv.DictReader(file)} == {"single", "unsorted"}


def test_only_broken_traces_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "broken.csv.gz").write_bytes(gzip.compress(b"requests_per_5s\nmany\n"))
    ran = bench("--traces", tmp_path, "--out", tmp_path / "out")

    assert ran.returncode == 2
    assert "broken.csv.gz" in ran.stderr
    assert "Traceback" not in ran.stderr
