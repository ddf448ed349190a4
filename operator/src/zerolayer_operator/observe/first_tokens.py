"""How long requests waited for their first token, from the histogram that workers keep of it; no I/O."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from zerolayer_operator.observe.load import Counted

SHARE: Final = 0.99
"""Share of the requests that waited no longer than what is told of them."""

Buckets = Mapping[float, float]
"""Requests that got their first token within so many seconds, by those: shorter waits count in each bound."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long requests waited for their first token during about the last minute.

    Attributes:
        p99_s: Seconds that one in a hundred exceeded; ``None`` where nobody waited for one.
    """

    p99_s: float | None


def waits(buckets: Buckets, counted: Counted) -> Waits | None:
    """What a minute's histogram tells; ``None`` where requests came or waited, and none got its first token.

    Args:
        buckets: First tokens of the minute.
        counted: What was counted in it beside them.
    """
    p99 = quantile(buckets, SHARE)
    if p99 is None and (counted.arrivals > 0 or counted.queued_s > 0):
        return None
    return Waits(p99)


def grown(now: Buckets, before: Buckets) -> Buckets:
    """What a worker's histogram grew by; negative somewhere if the worker has begun anew."""
    return {bound: now.get(bound, 0.0) - before.get(bound, 0.0) for bound in now.keys() | before.keys()}


def together(histograms: Iterable[Buckets]) -> Buckets:
    """The histogram of all requests in some; of bounds that not all have, none is kept.

    A histogram without bounds is of a worker that has had no request yet.
    """
    filled = [item for item in histograms if item]
    if not filled:
        return {}
    common = set(filled[0]).intersection(*filled[1:])
    return {bound: sum(item[bound] for item in filled) for bound in common}


def quantile(buckets: Buckets, share: float) -> float | None:
    """Seconds within which that share of the requests had their first token, as Prometheus reckons it.

    Within a bucket waits are taken to be spread evenly; what lies beyond the last finite bound counts as that
    bound. ``None`` without requests.
    """
    bounds = sorted(buckets)
    counts = list(accumulate((buckets[bound] for bound in bounds), max))
    if not counts or counts[-1] <= 0:
        return None
    rank = share * counts[-1]
    place = next(index for index, count in enumerate(counts) if count >= rank)
    lower, below = (bounds[place - 1], counts[place - 1]) if place else (0.0, 0.0)
    if math.isinf(bounds[place]):
        return lower
    return lower + (bounds[place] - lower) * (rank - below) / (counts[place] - below)
