"""`python -m zerolayer_bench.autoscaling --traces DIR --out DIR`."""

import argparse
import os
import sys
from pathlib import Path

from zerolayer_bench.autoscaling.acceptance import misses, verdicts
from zerolayer_bench.autoscaling.experiment import Row, Tell, run
from zerolayer_bench.autoscaling.report import lines, write_page, write_picture, write_tables
from zerolayer_bench.autoscaling.traces import TraceError, Workload, read

_FAILED, _SOME_LEFT_OUT = 2, 1


def benchmark(traces: Path, out: Path, workers: int, tell: Tell) -> tuple[list[Row], list[str]]:
    """Replays every trace of a folder, and writes tables and pictures as soon as each trace is done.

    Args:
        traces: folder with `*.csv.gz`.
        out: folder for tables and a picture for each trace; it is made.
        workers: processes at once.
        tell: takes a line for people about what is done.

    Returns:
        The rows, and a sentence about each file that is no trace.

    Raises:
        OSError: a folder can't be read or written.
        TraceError: there is no trace in it.
    """
    out.mkdir(parents=True, exist_ok=True)
    workloads, complaints = _read_all(traces)
    for complaint in complaints:
        tell(complaint)
    if not workloads:
        why = "; ".join(complaints) or "no *.csv.gz in it"
        raise TraceError(f"{traces}: {why}; give a folder of traces by TRACES=DIR")
    rows: list[Row] = []
    for of_trace in run(workloads, workers, tell):
        rows.extend(of_trace)
        write_tables(rows, out)
        write_page(rows, out / "summary.md")
        write_picture(of_trace, out)
    return rows, complaints


def _read_all(traces: Path) -> tuple[list[Workload], list[str]]:
    workloads: list[Workload] = []
    complaints: list[str] = []
    for path in sorted(traces.glob("*.csv.gz")):
        try:
            workloads.append(read(path))
        except (TraceError, OSError) as error:
            complaints.append(str(error))
    return workloads, complaints


def _say(line: str) -> None:
    print(f"bench-autoscaling: {line}", file=sys.stderr, flush=True)


def main() -> int:
    """Returns the exit status: 0, 1 where a file was left out, 2 where there is nothing to show."""
    parser = argparse.ArgumentParser(prog="bench-autoscaling", description=__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder with *.csv.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder for summary.csv and the pictures")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at once")
    options = parser.parse_args()
    try:
        rows, complaints = benchmark(options.traces, options.out, max(1, options.workers), _say)
    except (TraceError, OSError) as error:
        _say(str(error))
        return _FAILED
    print(*lines(rows), sep="\n")
    for miss in misses(list(verdicts(rows))):
        print(f"ours: {miss}")
    for complaint in complaints:
        _say(f"left out: {complaint}")
    print(options.out / "summary.csv")
    return _SOME_LEFT_OUT if complaints else 0
