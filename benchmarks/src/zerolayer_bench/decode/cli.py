"""`python -m zerolayer_bench.decode --out DIR`."""

import argparse
from pathlib import Path

import torch

from zerolayer_bench.decode.experiment import Timing, timings
from zerolayer_bench.rows import record


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-decode", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the table")
    parser.add_argument("--steps", type=int, default=200, help="steps of each batch and way")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch sees no GPU; run it on a machine that has one")
    with torch.inference_mode():
        record(options.out / "decode-cuda.csv", timings(torch.device("cuda"), steps=options.steps), line)
    return 0


def line(timing: Timing) -> str:
    """One row of the table that is printed."""
    return (
        f"batch {timing.batch:>2}  {timing.way:<7}median {timing.median_ms:7.3f} ms  "
        f"p99 {timing.p99_ms:7.3f} ms  {timing.tokens_per_s:9.1f} tokens/s  bound {timing.bound_ms:7.3f} ms"
    )
