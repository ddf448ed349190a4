"""What the operator's own policy has to be worth, on any trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from zerolayer_bench.autoscaling.experiment import OURS, Row, window_name

MOST_ABOVE_PCT = 0.5
LEAST_BELOW_PCT = 1.0
MOST_OVERLOAD_POINTS = 0.2
MULTI_DAY_S = 2 * 86400


@dataclass(frozen=True, slots=True)
class Verdict:
    """The operator's own policy on one trace at one cold start.

    Attributes:
        below_pct: replica-hours saved against the frontier of fixed windows at the same late share.
        overload_points: overload above that of a fixed window of 300 s, in points of the time.
        below_target_pct: replica-hours saved against the frontier of windows and targets, at the target
            that does best.
        is_multi_day: the trace is.
    """

    trace: str
    cold_start_s: int
    below_pct: float
    overload_points: float
    below_target_pct: float
    is_multi_day: bool


def verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    """Yields one for each trace and cold start, in the order of the rows."""
    for (trace, cold_start), group in groupby(rows, key=lambda row: (row.trace, row.cold_start_s)):
        by_name = {row.policy: row for row in group}
        ours, fixed = by_name[OURS], by_name[window_name(300)]
        yield Verdict(
            trace,
            cold_start,
            ours.window.below_pct,
            100 * (ours.outcome.overload_share - fixed.outcome.overload_share),
            max(row.target.below_pct for name, row in by_name.items() if name.endswith(OURS)),
            ours.duration_s >= MULTI_DAY_S,
        )


def misses(found: Sequence[Verdict]) -> list[str]:
    """Returns a sentence about each point that isn't reached; none where there is no such trace."""
    sentences: list[str] = []
    for verdict in found:
        where = f"{verdict.trace} at a cold start of {verdict.cold_start_s} s"
        if verdict.below_pct < -MOST_ABOVE_PCT:
            above = f"{-verdict.below_pct:.2f} % above the frontier of fixed windows"
            sentences.append(f"{where}: {above}, at most {MOST_ABOVE_PCT} % are allowed")
        if verdict.overload_points > MOST_OVERLOAD_POINTS:
            more = f"{verdict.overload_points:.2f} points more overload than a fixed 300 s"
            sentences.append(f"{where}: {more}, at most {MOST_OVERLOAD_POINTS} are allowed")
        if verdict.is_multi_day and verdict.below_target_pct < 0:
            above = f"{-verdict.below_target_pct:.2f} % above the frontier of windows and targets"
            sentences.append(f"{where}: {above} at its best target")
    mean = mean_below_pct(found)
    if mean is not None and mean < LEAST_BELOW_PCT:
        sentences.append(
            f"{mean:.2f} % below the frontier of fixed windows on average over traces of several days, "
            f"at least {LEAST_BELOW_PCT} % are asked for"
        )
    return sentences


def mean_below_pct(found: Sequence[Verdict]) -> float | None:
    """Returns the mean over traces of several days; None where there is none."""
    long = [verdict.below_pct for verdict in found if verdict.is_multi_day]
    return fmean(long) if long else None
