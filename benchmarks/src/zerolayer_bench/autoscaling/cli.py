"""`python -m zerolayer_bench.autoscaling --traces DIR --out DIR`."""

import argparse
import os
import sys
from pathlib import Path

from zerolayer_bench.autoscaling.experiment import run
from zerolayer_bench.autoscaling.report import write_pictures, write_table
from zerolayer_bench.autoscaling.traces import TraceError


def main() -> int:
    """Replays the traces, writes table and pictures, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-autoscaling", description=__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder with *.csv.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder for summary.csv and the pictures")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at once")
    options = parser.parse_args()
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        rows = list(run(options.traces, options.workers, lambda line: print(line, file=sys.stderr)))
        write_table(rows, options.out / "summary.csv")
        write_pictures(rows, options.out)
    except (TraceError, OSError) as error:
        print(f"bench-autoscaling: {error}", file=sys.stderr)
        return 2
    print(options.out / "summary.csv")
    return 0
