"""`python -m zerolayer_bench.verdict`, as a user runs it, on very few updates."""

import csv
import subprocess
import sys
from pathlib import Path

from zerolayer_bench.verdict.experiment import Ended
from zerolayer_bench.verdict.power import SAMPLES, SCENES, Run, powers
from zerolayer_bench.verdict.report import POWER_COLUMNS, RUN_COLUMNS, summary
from zerolayer_operator.decide.verdict import Outcome, Reason


def test_tables_and_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--out", str(out), "--updates", "1", "--looks", "12", "--workers", "1"]
    command = [sys.executable, "-m", "zerolayer_bench.verdict", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    with (out / "runs.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    with (out / "power.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (tuple(runs[0]), tuple(rows[0])) == (RUN_COLUMNS, POWER_COLUMNS)
    assert len(runs) == len(rows) == sum(len(scene.harms) for scene in SCENES)
    assert {row["kind"] for row in rows if int(row["failed"])} == {"errors", "slower"}
    assert (out / "power.png").read_bytes().startswith(b"\x89PNG")
    assert ran.stdout.startswith((out / "summary.md").read_text())


def test_what_was_caught_by_how_many_samples() -> None:
    def run(outcome: Outcome, samples: int) -> Run:
        return Run("scene", "none", 0.0, 0, Ended(outcome, Reason.NO_WORSE, 9, samples))

    rows = powers([run(Outcome.FAIL, 100), run(Outcome.FAIL, 501), run(Outcome.PASS, 100)])
    assert rows[0].caught == tuple(1 if most < 501 else 2 for most in SAMPLES)
    assert (rows[0].updates, rows[0].failed) == (3, 2)
    assert "67 % (at most 99.7 %)" in list(summary(rows))[-1]
