"""Makes evidence of what the workers of two revisions have counted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

from zerolayer_operator.decide.evidence import Histogram, Interval, Side
from zerolayer_operator.observe.answers import AnswerCounts
from zerolayer_operator.observe.first_tokens import Buckets


@dataclass(frozen=True, slots=True)
class Counted:
    """What a worker has counted by an instant.

    Attributes:
        revision: Its revision.
        counts: What it has counted.
    """

    revision: str
    counts: AnswerCounts


def interval(before: Mapping[str, Counted], now: Mapping[str, Counted], *, blue: str, green: str) -> Interval:
    """What both revisions' workers counted from one instant to the next.

    Args:
        before: Each worker's counts at the first, by the worker's UID.
        now: The same at the second; a worker that was not asked at the first counts from the next time on.
        blue: The revision that serves.
        green: The canary.
    """

    def grown(revision: str) -> Side:
        known = (
            item.counts.since(before[uid].counts)
            for uid, item in now.items()
            if item.revision == revision and uid in before
        )
        return together(map(side, known))

    return Interval(grown(blue), grown(green))


def repeats(now: Mapping[str, Counted], green: str) -> tuple[int, int]:
    """What the canary's workers have asked again since they began, and how often that differed."""
    all_of_it = together(side(item.counts) for item in now.values() if item.revision == green)
    return all_of_it.repeats, all_of_it.repeats_different


def together(sides: Iterable[Side]) -> Side:
    """All workers of a revision."""
    return reduce(add, sides, Side())


def side(counts: AnswerCounts) -> Side:
    """One worker's counts."""
    return Side(
        requests=round(counts.answered + counts.failed),
        errors=round(counts.failed),
        first_tokens=histogram(counts.first_tokens),
        token_gaps=histogram(counts.token_gaps),
        repeats=round(counts.same + counts.different),
        repeats_different=round(counts.different),
    )


def histogram(buckets: Buckets) -> Histogram:
    """A histogram whose buckets hold only what is not in those below."""
    bounds = sorted(buckets)
    if not bounds:
        return Histogram()
    below = [0.0, *(buckets[bound] for bound in bounds)]
    counts = tuple(max(0, round(now - before)) for before, now in pairwise(below))
    finite = tuple(bound for bound in bounds if bound != float("inf"))
    return Histogram(finite, counts if len(finite) < len(counts) else (*counts, 0))
