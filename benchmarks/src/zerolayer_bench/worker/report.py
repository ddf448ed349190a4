"""The page of figures, made of the raw numbers only, so that the two can't differ."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from zerolayer_bench.worker.agreement import REFERENCE
from zerolayer_bench.worker.cases import PRECISIONS, Agreement, Cell, Results
from zerolayer_bench.worker.statistics import Ratio, Row, Spread, ceilings, ratios, rows

_HEAD: Final = """\
# The worker beside other engines

<!-- made of results.json by zerolayer_bench.worker.report; do not edit -->

    make bench-worker OUT=DIR

measures `transformers`, llama.cpp (as `xllamacpp`), OpenVINO GenAI and the worker on one machine, with
the same values of SmolLM2-135M-Instruct and the same prompt tokens, and writes every sample to
`DIR/results.json`. Each engine runs alone in a process of its own, in interleaved rounds (A B C, A B C,
…). Decoding is greedy and no token ends an answer.
"""
_CLASSES: Final = """\
| precision | weights | ours | llama.cpp | transformers | OpenVINO |
| --- | --- | --- | --- | --- | --- |
| fp32 | the demo's Q4_1 file, expanded | fp32 | F32 | fp32 | F32 file |
| bf16 | the same, rounded | bf16 | BF16 | bf16 | BF16 file |
| int8 | the same, groups of 32 rounded to 8 bits | weight-only int8 | Q8_0 | none | Q8_0 file |
| int4 | the demo's Q4_1 file, its head in 8 bits | int4, groups of 32 | Q4_1 | none | Q4_1 file |

*TTFT* is the time from submission to the first token, the median over the requests of a batch. *decode*
is tokens per second of all requests together from when each of them had its first token, *tokens/s* the
same from submission on. *gap* is the time between two tokens of a request. *of bound* is decode steps per
second over those at which reading all weights once would take all the time, at the read bandwidth
measured in the same run. Figures are medians over the rounds, with least and most. `*` marks what was
measured while other processes took over 5 % of the processors.
"""


def page(results: Results) -> str:
    """Returns the whole page."""
    measured = rows(results.samples)
    return "\n".join(
        [
            _HEAD,
            *_where(results),
            "",
            _CLASSES,
            *_tables(results, measured),
            *_ratio_lines(ratios(measured)),
            *_agreement_lines(results.agreements),
            *_missing(results),
            *_profiles(results),
        ]
    )


def _where(results: Results) -> Iterator[str]:
    machine = results.machine
    versions = ", ".join(f"{name} {version}" for name, version in sorted(machine["versions"].items()))
    yield f"{machine['machine']}; {', '.join(machine['flags'])}; L3 {machine['l3_mib']:.0f} MiB; "
    yield f"{machine['threads']} threads; commit {machine['commit']}, {machine['date']}; {versions}."
    yield f"Read bandwidth: {machine['bandwidth'] / 1e9:.1f} GB/s. Weights, and the bound that follows:"
    bounds = ceilings(machine["bandwidth"], machine["weight_bytes"])
    kinds = [kind for kind in PRECISIONS if kind in bounds]
    yield (
        "; ".join(
            f"{kind} {machine['weight_bytes'][kind] / 1e6:.0f} MB, {bounds[kind]:.0f} steps/s"
            for kind in kinds
        )
        + "."
    )


def _tables(results: Results, measured: Sequence[Row]) -> Iterator[str]:
    bounds = ceilings(results.machine["bandwidth"], results.machine["weight_bytes"])
    for cell, group in groupby(measured, key=lambda row: row.cell):
        yield f"## Batch {cell.batch}, prompt {cell.prompt}, {cell.new} new tokens\n"
        yield f"    {command(results, cell)}\n"
        yield _line(
            "engine",
            "TTFT ms",
            "decode",
            "of bound",
            "tokens/s",
            "gap p50 / p99 ms",
            "peak MiB",
            "ready s",
            "load",
        )
        yield _line(*["---"] * 9)
        order = sorted(
            group, key=lambda row: (PRECISIONS.index(row.contender.precision), row.contender.engine)
        )
        for row in order:
            bound = bounds[row.contender.precision]
            yield _line(
                f"{row.contender}{'*' if row.busy else ''}",
                _spread(row.ttft_ms, 0),
                _spread(row.decode, 1),
                f"{100 * row.decode.median / cell.batch / bound:.0f} %",
                _spread(row.total, 1),
                f"{row.gap_p50_ms.median:.1f} / {row.gap_p99_ms.median:.1f}",
                f"{row.peak_mib.median:.0f}",
                f"{row.ready_s.median:.1f}",
                f"{row.load.most:.1f}",
            )
        yield ""


def command(results: Results, cell: Cell) -> str:
    """Returns what measures one cell anew."""
    return (
        f"make bench-worker OUT=DIR ARGS='--batch {cell.batch} --prompt {cell.prompt} --new {cell.new} "
        f"--rounds {results.machine['rounds']}'"
    )


def _ratio_lines(found: Sequence[Ratio]) -> Iterator[str]:
    if not found:
        return
    yield "## Ours against the best peer of each precision\n"
    yield "Of `decode` and `tokens/s` more is better, of TTFT less. Promised are decode ≥ 1.0 and TTFT ≤ 1.0"
    yield "at batch 1, and 1.2 times the tokens/s at batch 8 and 16.\n"
    yield _line("precision", "batch", "prompt", "decode", "TTFT", "tokens/s", "holds")
    yield _line(*["---"] * 7)
    for one in found:
        yield _line(
            f"{one.precision}{'*' if one.busy else ''}",
            str(one.cell.batch),
            str(one.cell.prompt),
            f"{one.decode:.2f} ({one.decode_peer})",
            f"{one.ttft:.2f} ({one.ttft_peer})",
            f"{one.total:.2f} ({one.total_peer})",
            _judged(one),
        )
    yield ""


def _judged(ratio: Ratio) -> str:
    if ratio.busy:
        return "not judged: disturbed"
    return "yes" if ratio.holds else "**no**"


def _agreement_lines(agreed: Sequence[Agreement]) -> Iterator[str]:
    if not agreed:
        return
    yield "## Where greedy answers part\n"
    yield f"Tokens from the beginning that are those of `{REFERENCE}`, the fewest of a cell's requests, for"
    yield "each engine over the cells (least to most):\n"
    yield _line("engine", "tokens")
    yield _line("---", "---")
    order = sorted(agreed, key=lambda one: one.contender)
    for contender, group in groupby(order, key=lambda one: one.contender):
        counts = [one.tokens for one in group]
        yield _line(str(contender), f"{min(counts)} to {max(counts)}")
    yield ""


def _missing(results: Results) -> Iterator[str]:
    if not results.missing:
        return
    yield "## Without a figure\n"
    for one in results.missing:
        yield f"- {one.contender}, batch {one.batch}: {one.reason}"
    yield ""


def _profiles(results: Results) -> Iterator[str]:
    for name, table in results.profile.items():
        yield f"## Where the time goes: {name}\n"
        yield f"```\n{table.rstrip()}\n```\n"


def _spread(value: Spread, digits: int) -> str:
    middle = f"{value.median:.{digits}f}"
    if value.least == value.most:
        return middle
    return f"{middle} ({value.least:.{digits}f} to {value.most:.{digits}f})"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
