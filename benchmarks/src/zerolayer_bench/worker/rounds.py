"""Interleaved rounds: every contender in turn, each in a fresh process, again and again."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zerolayer_bench.worker.cases import Cell, Contender, Missing, Sample, sample_from
from zerolayer_bench.worker.machine import wait_until_quiet

_CHILD = "zerolayer_bench.worker.child"
_UNAVAILABLE = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does.

    Attributes:
        limit_s: the longest one process may take.
        quiet_share: others' share of the processors up to which the machine counts as quiet.
        patience_s: the longest wait for that before each process.
    """

    contenders: tuple[Contender, ...]
    cells: tuple[Cell, ...]
    rounds: int
    cache: Path
    threads: int
    limit_s: float = 900.0
    quiet_share: float = 0.05
    patience_s: float = 60.0

    def turns(self) -> Iterator[tuple[int, int, Contender]]:
        """Yields round, batch and contender: A B C A B C at each batch size."""
        for turn in range(self.rounds):
            for batch in sorted({cell.batch for cell in self.cells}):
                for contender in self.contenders:
                    yield turn, batch, contender


def run(plan: Plan, tell: Callable[[str], None]) -> tuple[list[Sample], list[Missing]]:
    """Runs all turns. A contender that failed at a batch size is left out of its later rounds."""
    samples: list[Sample] = []
    missing: dict[tuple[Contender, int], Missing] = {}
    for turn, batch, contender in plan.turns():
        if (contender, batch) in missing:
            continue
        if not wait_until_quiet(plan.quiet_share, plan.patience_s):
            tell("the machine is busy; figures made now are marked")
        cells = [cell for cell in plan.cells if cell.batch == batch]
        found, reason = measure(plan, contender, cells, turn)
        samples += found
        if reason is not None:
            missing[contender, batch] = Missing(contender, batch, reason)
        tell(f"round {turn + 1}, batch {batch}, {contender}: {reason or f'{len(found)} cells'}")
    return samples, list(missing.values())


def measure(
    plan: Plan, contender: Contender, cells: Sequence[Cell], turn: int
) -> tuple[list[Sample], str | None]:
    """Runs one process; returns what it measured, and why it measured less than asked."""
    lines, reason = call(one_process(plan, contender, cells, turn), plan.limit_s)
    return [sample_from(line["sample"]) for line in lines if "sample" in line], reason


def one_process(plan: Plan, contender: Contender, cells: Sequence[Cell], turn: int) -> dict[str, Any]:
    """Returns the job of one contender's process; all `cells` have the same batch size."""
    return {
        "engine": contender.engine,
        "precision": contender.precision,
        "batch": cells[0].batch,
        "cells": [asdict(cell) for cell in cells],
        "round": turn,
        "cache": str(plan.cache),
        "threads": plan.threads,
    }


def bandwidth(threads: int) -> float:
    """Bytes per second, measured in a process of its own.

    Raises:
        RuntimeError: it could not be measured.
    """
    lines, reason = call({"engine": "bandwidth", "threads": threads}, 120)
    if reason is not None:
        raise RuntimeError(reason)
    return float(lines[-1]["bandwidth"])


def call(
    job: dict[str, Any], limit_s: float, module: str = _CHILD
) -> tuple[list[dict[str, Any]], str | None]:
    """Runs a module on a job; returns its lines, and what went wrong."""
    with tempfile.TemporaryDirectory(prefix="bench-worker-") as scratch:
        out, errors = Path(scratch) / "lines", Path(scratch) / "errors"
        text = json.dumps(job | {"out": str(out), "began": time.monotonic()})
        with errors.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, text],
                stdout=output, stderr=output, process_group=0,
            )  # fmt: skip
            status = _wait(process, limit_s)
        written = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
        lines = [json.loads(line) for line in written]
        tail = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    return lines, _reason(status, lines, tail, limit_s)


def _wait(process: "subprocess.Popen[bytes]", limit_s: float) -> int | None:
    """Exit status, or None where the time was up and the process and its children were ended."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _reason(
    status: int | None, lines: Sequence[dict[str, Any]], tail: Sequence[str], limit_s: float
) -> str | None:
    if status == 0:
        return None
    if status is None:
        return f"not done after {limit_s:.0f} s"
    if status == _UNAVAILABLE:
        return str(lines[-1]["unavailable"])
    return f"ended with status {status}: {' '.join(tail)[:300]}"
