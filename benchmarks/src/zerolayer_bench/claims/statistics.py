"""Ratios of two paths that were measured in turns, with an interval from the turns themselves."""

import math
import random
from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import TypeVar

from zerolayer_bench.claims.verdicts import Estimate
from zerolayer_bench.worker.statistics import quantile

Turn = TypeVar("Turn")

DRAWS = 1000
_TAIL = 0.025


def resampled(
    turns: Sequence[Turn], value: Callable[[Sequence[Turn]], float], draws: int = DRAWS
) -> Estimate:
    """The value over all turns, and the 95 % interval of a bootstrap that draws whole turns.

    The draws are the same each time, so that the same raw numbers make the same page.
    """
    dice = random.Random(1)
    found = sorted(value(dice.choices(turns, k=len(turns))) for _ in range(draws))
    return Estimate(value(turns), quantile(found, _TAIL), quantile(found, 1 - _TAIL))


def over_cells(ratios: Sequence[float]) -> Estimate:
    """The geometric mean of the ratios of several cells, with the least and the most."""
    return Estimate(geometric_mean(ratios), min(ratios), max(ratios))


def certain_share(clean: int, failed: int, confidence: float = 0.95) -> float:
    """The share of clean runs of which one can be sure, by Clopper and Pearson's lower bound.

    Raises:
        ValueError: there was no run.
    """
    runs = clean + failed
    if runs == 0:
        raise ValueError("no run, no share")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most_failed(runs, failed, 1 - middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    # P(at most `failed` failures) grows with the clean share; the bound is where so few are still unlikely.
    return low


def _at_most_failed(runs: int, failed: int, share: float) -> float:
    """Probability of at most `failed` failures in `runs`, each of probability `share`."""
    if share <= 0.0:
        return 1.0
    if share >= 1.0:
        return float(failed >= runs)
    logs = (
        math.lgamma(runs + 1) - math.lgamma(count + 1) - math.lgamma(runs - count + 1)
        + count * math.log(share) + (runs - count) * math.log1p(-share)
        for count in range(failed + 1)
    )  # fmt: skip
    return min(1.0, sum(math.exp(each) for each in logs))
