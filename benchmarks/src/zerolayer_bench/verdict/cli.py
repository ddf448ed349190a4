"""`python -m zerolayer_bench.verdict --out DIR`."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from zerolayer_bench.verdict.power import SCENES, Run, powers, run
from zerolayer_bench.verdict.report import summary, write_picture, write_tables


def benchmark(out: Path, workers: int, updates: int | None = None, looks: int | None = None) -> list[Run]:
    """Simulates all scenes, and writes tables and a picture as soon as each scene is done.

    Args:
        out: folder for the tables and the picture; it is made.
        workers: processes at once.
        updates: simulated for each harm instead of what the scenes say.
        looks: the most of one soak.
    """
    out.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    for scene in SCENES:
        smaller = replace(
            scene, updates=updates or scene.updates, looks=min(scene.looks, looks or scene.looks)
        )
        runs += run([smaller], workers)
        print(f"bench-verdict: {scene.name}", file=sys.stderr, flush=True)
        write_tables(runs, powers(runs), out)
        write_picture(powers(runs), out / "power.png")
    return runs


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-verdict", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables and the picture")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--updates", type=int, help="simulated for each harm; as the scenes say if absent")
    parser.add_argument("--looks", type=int, help="the most of one soak; as the scenes say if absent")
    options = parser.parse_args()
    runs = benchmark(options.out, max(1, options.workers), options.updates, options.looks)
    print(*summary(powers(runs)), sep="\n")
    print(options.out / "power.csv")
    return 0
