"""`python -m zerolayer_bench.sampling --out DIR`."""

import argparse
from pathlib import Path

import torch

from zerolayer_bench.rows import record
from zerolayer_bench.sampling.experiment import Timing, timings


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-sampling", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the table")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeats", type=int, default=200, help="runs of every way at batch 1")
    parser.add_argument("--threads", type=int, help="of torch on the CPU; its own choice if absent")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda, but torch sees no GPU; run it on a machine that has one")
    if options.threads:
        torch.set_num_threads(options.threads)
    with torch.inference_mode():
        record(options.out / f"sampling-{options.device}.csv", timings(options.device, options.repeats), line)
    return 0


def line(timing: Timing) -> str:
    """One row of the table that is printed."""
    return (
        f"V {timing.vocab:>7}  batch {timing.batch:>2}  {timing.way:<32}"
        f"median {timing.median_ms:8.3f} ms  p99 {timing.p99_ms:8.3f} ms  sigma {timing.sigma_ms:7.3f} ms"
    )
