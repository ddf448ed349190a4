"""The whole benchmark on recorded arrivals, which are no part of the repository."""

import os
from pathlib import Path

import pytest

from zerolayer_bench.autoscaling.acceptance import mean_below_pct, misses, verdicts
from zerolayer_bench.autoscaling.cli import benchmark
from zerolayer_dev.paths import repo_root

VARIABLE = "ZEROLAYER_TRACES"
OUT = repo_root() / "out" / "bench-autoscaling"


def traces_folder() -> Path:
    """The folder that the environment names, or the one that lies beside the checkout."""
    folder = Path(os.environ.get(VARIABLE) or repo_root().parent / "shared" / "data" / "traces")
    if not any(folder.glob("*.csv.gz")):
        pytest.fail(f"{folder} has no *.csv.gz: set {VARIABLE} to a folder with arrival traces")
    return folder


@pytest.mark.long
@pytest.mark.promise("below-the-frontier")
@pytest.mark.timeout(4 * 3600)
def test_below_the_frontier_of_fixed_windows(figures) -> None:
    """Fewer replica-hours than any fixed window needs for as few late requests, on recorded weeks."""
    rows, complaints = benchmark(traces_folder(), OUT, os.cpu_count() or 1, print)
    found = list(verdicts(rows))

    for verdict in found:
        figures(
            trace=verdict.trace,
            cold_start_s=verdict.cold_start_s,
            below_frontier_pct=round(verdict.below_pct, 2),
            overload_points_over_300s=round(verdict.overload_points, 2),
            best_target_below_pct=round(verdict.below_target_pct, 2),
        )
    mean = mean_below_pct(found)
    figures(mean_of_multi_day_pct=None if mean is None else round(mean, 2))
    assert not complaints
    assert not misses(found)
