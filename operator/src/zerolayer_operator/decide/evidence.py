"""What the workers of two revisions counted in the same time; no I/O."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many times took how long.

    Attributes:
        bounds: Upper bounds of the buckets in seconds, inclusive, growing, without infinity.
        counts: Times in each bucket and not below it, one more than bounds: the last is of longer times.
            Empty where nothing was counted.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """All times counted."""
        return sum(self.counts)

    def beyond(self, bound: float) -> int:
        """Times longer than a bound in seconds; where the histogram has it not, than its next longer one."""
        return sum(self.counts[bisect_left(self.bounds, bound) + 1 :])

    def __add__(self, other: "Histogram") -> "Histogram":
        """Both together; where they have other bounds, the second alone, as of workers that began anew."""
        if not other.counts:
            return self
        if self.bounds != other.bounds:
            return other
        return Histogram(self.bounds, tuple(map(int.__add__, self.counts, other.counts)))


NO_TIMES: Final = Histogram()


@dataclass(frozen=True, slots=True)
class Side:
    """What one revision's workers counted in one interval.

    Attributes:
        requests: Answered and failed ones. What the client got wrong, was refused for load or gave up is
            neither.
        errors: Failed ones among them, by the worker's fault.
        first_tokens: Times from a request to its first token.
        token_gaps: Times from one token of an answer to the next.
        repeats: Deterministic requests that were asked again.
        repeats_different: Those among them whose second answer was another.
    """

    requests: int = 0
    errors: int = 0
    first_tokens: Histogram = field(default=NO_TIMES)
    token_gaps: Histogram = field(default=NO_TIMES)
    repeats: int = 0
    repeats_different: int = 0

    def __add__(self, other: "Side") -> "Side":
        """Two intervals together."""
        return Side(
            self.requests + other.requests,
            self.errors + other.errors,
            self.first_tokens + other.first_tokens,
            self.token_gaps + other.token_gaps,
            self.repeats + other.repeats,
            self.repeats_different + other.repeats_different,
        )


@dataclass(frozen=True, slots=True)
class Interval:
    """Both sides in the same time, about 15 s; not one in which either was short of pods.

    Attributes:
        blue: The serving revision.
        green: The canary.
    """

    blue: Side
    green: Side


@dataclass(frozen=True, slots=True)
class Golden:
    """What the golden set found when both sides were asked it.

    Attributes:
        expected: Questions with an expected answer.
        right: Those that green answered as expected.
        blue_right: Those that blue did.
        kept: Questions whose answer should not change.
        similarity: Mean similarity of both sides' answers to those, in [-1, 1]; ``None`` without any.
        threshold: The similarity below which answers differ by more than the base model from itself.
        repeats: Questions that green was asked twice.
        repeats_different: Those whose second answer was another.
        failing: Some of the questions that speak against green, and why, for people.
        unknown: Why nothing of this is known yet, or never will be; empty where it is.
    """

    expected: int = 0
    right: int = 0
    blue_right: int = 0
    kept: int = 0
    similarity: float | None = None
    threshold: float = 0.98
    repeats: int = 0
    repeats_different: int = 0
    failing: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a PromQL check of the user's came to at this look.

    Attributes:
        name: The check's, unique in the pool.
        satisfied: Whether the value is as wanted; ``None`` where there is no value.
        detail: For people: the value and what is wanted, or why there is none.
    """

    name: str
    satisfied: bool | None
    detail: str = ""
