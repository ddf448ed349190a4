"""Figures of samples: what a user would feel, medians and spreads over rounds, and ratios."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from zerolayer_bench.worker.cases import OURS, Answer, Cell, Contender, Sample

# Others' share of the processors from which a sample counts as disturbed.
BUSY_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Speeds:
    """What one measurement of a cell comes to.

    Attributes:
        ttft_ms: median over the requests of the time to the first token.
        decode: tokens per second of all requests together, from when each had its first token.
        total: tokens per second of all requests together, from their submission to the last token.
        gap_p50_ms: median time between two tokens of a request.
        gap_p99_ms: its 99th percentile.
    """

    ttft_ms: float
    decode: float
    total: float
    gap_p50_ms: float
    gap_p99_ms: float


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the rounds."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Row:
    """A contender in a cell, over all rounds."""

    contender: Contender
    cell: Cell
    rounds: int
    ttft_ms: Spread
    decode: Spread
    total: Spread
    gap_p50_ms: Spread
    gap_p99_ms: Spread
    peak_mib: Spread
    ready_s: Spread
    load: Spread
    busy: bool


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours against the best peer that has the same precision; above 1 is better for ours in `speed`.

    Attributes:
        ttft: our time to first token over the best peer's; below 1 is better. The best may differ by figure.
        busy: whether one of the samples behind it was disturbed.
    """

    precision: str
    cell: Cell
    decode: float
    decode_peer: str
    total: float
    total_peer: str
    ttft: float
    ttft_peer: str
    busy: bool

    @property
    def holds(self) -> bool:
        """Alone: decode as fast as the best and first token as early; together: 1.2 times the best."""
        if self.cell.batch == 1:
            return self.decode >= 1.0 and self.ttft <= 1.0
        return self.total >= 1.2


def speeds(answers: Sequence[Answer]) -> Speeds:
    """Computes the figures of one measurement.

    Raises:
        ValueError: an answer has fewer than two tokens.
    """
    if not answers or min(len(answer.stamps) for answer in answers) < 2:
        raise ValueError("every answer needs two tokens at least")
    began = max(answer.stamps[0] for answer in answers)
    ended = max(answer.stamps[-1] for answer in answers)
    after = sum(stamp > began for answer in answers for stamp in answer.stamps)
    gaps = sorted(
        late - early for one in answers for early, late in zip(one.stamps, one.stamps[1:], strict=False)
    )
    return Speeds(
        ttft_ms=1e3 * median(answer.stamps[0] for answer in answers),
        decode=after / (ended - began) if ended > began else 0.0,
        total=sum(len(answer.stamps) for answer in answers) / ended,
        gap_p50_ms=1e3 * quantile(gaps, 0.5),
        gap_p99_ms=1e3 * quantile(gaps, 0.99),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the ordered values do not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def rows(samples: Iterable[Sample]) -> list[Row]:
    """Returns a row for each cell and contender, in their order."""
    groups: dict[tuple[Cell, Contender], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.cell, sample.contender].append(sample)
    return [_row(cell, contender, groups[cell, contender]) for cell, contender in sorted(groups)]


def _row(cell: Cell, contender: Contender, samples: Sequence[Sample]) -> Row:
    found = [speeds(sample.answers) for sample in samples]
    return Row(
        contender=contender,
        cell=cell,
        rounds=len(samples),
        ttft_ms=spread(one.ttft_ms for one in found),
        decode=spread(one.decode for one in found),
        total=spread(one.total for one in found),
        gap_p50_ms=spread(one.gap_p50_ms for one in found),
        gap_p99_ms=spread(one.gap_p99_ms for one in found),
        peak_mib=spread(sample.peak_mib for sample in samples),
        ready_s=spread(sample.ready_s for sample in samples),
        load=spread(sample.load for sample in samples),
        busy=median(sample.stolen for sample in samples) > BUSY_SHARE,
    )


def spread(values: Iterable[float]) -> Spread:
    """Median, least and most."""
    known = list(values)
    return Spread(median(known), min(known), max(known))


def ratios(measured: Sequence[Row]) -> list[Ratio]:
    """Ours against the best peer, for each cell and precision that ours and a peer have."""
    by_place: dict[tuple[str, Cell], list[Row]] = defaultdict(list)
    for row in measured:
        by_place[row.contender.precision, row.cell].append(row)
    return [ratio for key in sorted(by_place) if (ratio := _ratio(*key, by_place[key])) is not None]


def _ratio(precision: str, cell: Cell, here: Sequence[Row]) -> Ratio | None:
    ours = next((row for row in here if row.contender.engine == OURS), None)
    peers = [row for row in here if row.contender.engine != OURS]
    if ours is None or not peers:
        return None
    decode = max(peers, key=lambda row: row.decode.median)
    total = max(peers, key=lambda row: row.total.median)
    ttft = min(peers, key=lambda row: row.ttft_ms.median)
    return Ratio(
        precision=precision,
        cell=cell,
        decode=ours.decode.median / decode.decode.median,
        decode_peer=decode.contender.engine,
        total=ours.total.median / total.total.median,
        total_peer=total.contender.engine,
        ttft=ours.ttft_ms.median / ttft.ttft_ms.median,
        ttft_peer=ttft.contender.engine,
        busy=any(row.busy for row in here),
    )


def ceilings(bytes_per_second: float, weight_bytes: Mapping[str, int]) -> dict[str, float]:
    """Steps per second at which only reading all weights once takes the time, by precision."""
    return {precision: bytes_per_second / size for precision, size in weight_bytes.items()}
