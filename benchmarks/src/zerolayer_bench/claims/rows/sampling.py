"""Memory and time of the sampling step."""

from collections.abc import Iterator
from typing import Any, Final

from zerolayer_bench.claims.record import Records
from zerolayer_bench.claims.rows.base import FUSED, LOGITS, Claim, table
from zerolayer_bench.claims.statistics import over_cells
from zerolayer_bench.claims.verdicts import Estimate, Part

_MIB: Final = 2**20
# The same step on another random head ranks a few tokens more or fewer.
_CHANCE: Final = 1.1
_WHOLE: Final = 26.7 / 32.4
# The middle of 0.8 to 1.2 ms over the middle of 3.5 to 7 ms; the figures give no better.
_TIME: Final = 1.0 / 5.25
_SIGMA: Final = 0.3 / 4.2
# Each fused way beside the kept logits it replaces.
PAIRS: Final = {
    "sort-based top-p": ("fused T 0.7, top-p 0.9", "sort-based top-p of logits"),
    "plain top-k": ("fused T 0.7, top-k 50", "top-k of logits"),
}


def _memory_parts(records: Records) -> list[Part]:
    cells = [cell for data in records["memory"] for cell in data["cells"]]
    batch = max(cell["batch"] for cell in cells)
    peaks = [cell["fused"] for cell in cells if cell["batch"] == batch]
    kept = max(cell["largest"] / (cell["batch"] * cell["vocab"]) for cell in cells)
    return [
        Part(
            "largest tensor of the step, in buffers of all logits",
            "128 MB → 0",
            needed=1.0,
            measured=Estimate.exact(kept),
        ),
        Part(
            f"the fused step's peak at the largest vocabulary over that at the smallest, batch {batch}",
            "128 MB → 0",
            needed=_CHANCE,
            measured=Estimate.exact(max(peaks) / min(peaks)),
        ),
        _whole_process(records["served"][-1]["peak_mib"]),
    ]


def _whole_process(peaks: dict[str, float]) -> Part:
    return Part(
        "memory of the whole worker under load, fused over logits",
        "32.4 → 26.7 GB, -17.6 %",
        needed=_WHOLE,
        measured=Estimate.exact(peaks[FUSED] / peaks[LOGITS]),
        remark=f"{peaks[LOGITS]:.0f} and {peaks[FUSED]:.0f} MiB resident at most",
    )


def _memory_tables(records: Records) -> Iterator[str]:
    rows = [
        [
            str(cell["vocab"]),
            str(cell["batch"]),
            *(f"{cell[way] / _MIB:.2f}" for way in ("fused", "top_k", "top_p")),
            f"{cell['fused'] / cell['top_k']:.2f}",
            f"{cell['fused'] / cell['top_p']:.2f}",
        ]
        for data in records["memory"]
        for cell in data["cells"]
    ]
    head = ["vocabulary", "batch", "fused, MiB", "top-k of logits", "sort-based top-p of logits"]
    yield from table([*head, "fused over top-k", "fused over top-p"], rows)


def _time_parts(records: Records) -> list[Part]:
    cells = _cells(records)
    return [
        Part(
            f"{what}, fused over {name}",
            introduced,
            needed=needed,
            measured=over_cells([cell[fused][field] / cell[kept][field] for cell in cells.values()]),
            neutral=1.0,
        )
        for name, (fused, kept) in PAIRS.items()
        for what, field, introduced, needed in (
            ("median time", "median_ms", "3.5 to 7 → 0.8 to 1.2 ms", _TIME),
            ("standard deviation", "sigma_ms", "4.2 → 0.3 ms", _SIGMA),
        )
    ]


def _cells(records: Records) -> dict[tuple[int, int], dict[str, Any]]:
    """Timings by way, of each vocabulary and batch."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for data in records["sampling-time"]:
        for timing in data["timings"]:
            found.setdefault((timing["vocab"], timing["batch"]), {})[timing["way"]] = timing
    return found


def _time_tables(records: Records) -> Iterator[str]:
    ways = [way for pair in PAIRS.values() for way in pair]
    rows = [
        [
            str(vocab),
            str(batch),
            *(f"{cell[way]['median_ms']:.2f} ± {cell[way]['sigma_ms']:.2f}" for way in ways),
        ]
        for (vocab, batch), cell in _cells(records).items()
    ]
    yield from table(["vocabulary", "batch", *ways], rows)
    yield ""
    yield "Milliseconds: median ± standard deviation."


MEMORY: Final = Claim(
    title="Memory of the sampling step",
    introduced="the buffer of logits 128 MB → 0, GPU memory -17.6 %",
    sources=("memory", "served"),
    how=(
        "Peaks count every tensor of torch's operators and what Python holds, without the head's weight, "
        "at temperature 0.7 with top-p 0.9. *One buffer of all logits* is batch times vocabulary "
        "elements. The whole worker is the one of the next claims: SmolLM2-135M, 16 requests at once, "
        "logits sorted in fp32."
    ),
    parts=_memory_parts,
    tables=_memory_tables,
)
TIME: Final = Claim(
    title="Time of the sampling step",
    introduced="3.5 to 7 → 0.8 to 1.2 ms, sigma 4.2 → 0.3 ms",
    sources=("sampling-time",),
    how=(
        "Without the head's product, which is the same for all, in turns on one thread. The ratio is the "
        "geometric mean over the cells of the table; beside it are the least and the most, and each cell "
        "has to be on the better side of 1. The figures name no baseline, so each is judged against both."
    ),
    parts=_time_parts,
    tables=_time_tables,
)
