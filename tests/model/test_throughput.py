"""The worker beside other engines at the same precision of weights; `make bench-worker` measures."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from zerolayer_bench.worker.cases import OURS, Results, read
from zerolayer_bench.worker.statistics import Ratio, ceilings, ratios, rows
from zerolayer_dev.testing.make import make

# Share of ratios with a disturbed sample up to which the run is judged.
BUSIEST = 1 / 10


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.promise("throughput")
def test_as_fast_as_the_best_alone_and_faster_together(tmp_path: Path, figures: Callable[..., None]) -> None:
    """Alone at least as fast as the best of three engines; at batch 8 and 16, 1.2 times its tokens/s."""
    ran = make("bench-worker", f"OUT={tmp_path}", f"ARGS={os.environ.get('ZEROLAYER_BENCH_ARGS', '')}")
    assert ran.returncode == 0, ran.stdout
    results = read(tmp_path / "results.json")
    found = ratios(rows(results.samples))
    tell(results, found, figures)
    lacking = [one for one in results.missing if one.contender.engine == OURS]
    disturbed = [one for one in found if one.busy]
    assert not lacking, f"ours gave no figure: {lacking}"
    assert found
    assert len(disturbed) <= BUSIEST * len(found), "others used the machine meanwhile; that says nothing"
    assert [one for one in found if not one.holds] == []


def tell(results: Results, found: list[Ratio], figures: Callable[..., None]) -> None:
    """Every ratio, each with what reading the weights alone would allow."""
    bounds = ceilings(results.machine["bandwidth"], results.machine["weight_bytes"])
    ours = {
        (row.contender.precision, row.cell): row
        for row in rows(results.samples)
        if row.contender.engine == OURS
    }
    for one in found:
        steps = ours[one.precision, one.cell].decode.median / one.cell.batch
        figures(
            precision=one.precision,
            batch=one.cell.batch,
            prompt=one.cell.prompt,
            decode=round(one.decode, 3),
            decode_peer=one.decode_peer,
            ttft=round(one.ttft, 3),
            ttft_peer=one.ttft_peer,
            tokens_per_s=round(one.total, 3),
            tokens_peer=one.total_peer,
            of_bound=round(steps / bounds[one.precision], 3),
            holds=one.holds,
            busy=one.busy,
        )
