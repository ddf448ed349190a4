"""From what was seen of an update to what is drawn and counted; times are in seconds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from zerolayer_dev.testing.askers import Answer

BIN_S = 5.0
"""Width of a bin of requests, in seconds."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A pool as it was at one moment.

    Attributes:
        at: when, in monotonic seconds.
        step: of the update; empty while there is none.
        green: the revision that is introduced, if any.
        verdict: on it, so far.
        reason: for that, in one word.
        serving: the revision that serves.
        weights: of requests that name nothing, by revision, in percent.
        ready: ready workers, by revision.
    """

    at: float
    step: str
    green: str
    verdict: str
    reason: str
    serving: str
    weights: dict[str, int]
    ready: dict[str, int]


@dataclass(frozen=True, slots=True)
class Span:
    """A step, from one second to another."""

    step: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at a second."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn, in seconds since the first moment.

    Attributes:
        revisions: in the order of their appearance.
        seconds: of the moments, one for each value below.
        weights: percent of the requests, by revision.
        ready: workers, by revision.
        bins: the middles of the bins of answers, in seconds.
        rates: answers a second in each bin, by revision.
        errors: when a request failed, in seconds.
        spans: steps.
        marks: verdicts and ends.
    """

    revisions: tuple[str, ...]
    seconds: tuple[float, ...]
    weights: dict[str, tuple[int, ...]]
    ready: dict[str, tuple[int, ...]]
    bins: tuple[float, ...]
    rates: dict[str, tuple[float, ...]]
    errors: tuple[float, ...]
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """What became of requests.

    Attributes:
        requests: all.
        failures: those without a whole answer.
        canary: answers of each canary to requests that named no revision while it had its weight.
        shared: all answers to such requests, by canary.
        conversations: how many were held.
        mixed: how many of them were answered by more than one revision.
        untold: how many of these were not told so.
    """

    requests: int
    failures: int
    canary: dict[str, int]
    shared: dict[str, int]
    conversations: int
    mixed: int
    untold: int


def series(moments: Sequence[Moment], answers: Sequence[Answer]) -> Series:
    """Turns what was seen into what is drawn.

    Raises:
        ValueError: nothing was seen.
    """
    if not moments:
        raise ValueError("nothing was seen")
    start, end = moments[0].at, moments[-1].at
    revisions = _revisions(moments)
    edges = [start + BIN_S * place for place in range(int((end - start) // BIN_S) + 1)]
    return Series(
        revisions=revisions,
        seconds=tuple(moment.at - start for moment in moments),
        weights={name: tuple(moment.weights.get(name, 0) for moment in moments) for name in revisions},
        ready={name: tuple(moment.ready.get(name, 0) for moment in moments) for name in revisions},
        bins=tuple(edge + BIN_S / 2 - start for edge in edges),
        rates={name: _rates(edges, answers, name) for name in revisions},
        errors=tuple(answer.ended - start for answer in answers if answer.failure),
        spans=tuple(_spans(moments, start)),
        marks=tuple(_marks(moments, start)),
    )


def count(moments: Sequence[Moment], unpinned: Sequence[Answer], held: Sequence[Sequence[Answer]]) -> Count:
    """Counts requests, failures, shares and versions."""
    windows = _shared_windows(moments)
    shared = {green: _within(unpinned, begin, end) for green, begin, end in windows}
    everything = [*unpinned, *(answer for turns in held for answer in turns)]
    mixed = [turns for turns in held if len({answer.revision for answer in turns if answer.revision}) > 1]
    return Count(
        requests=len(everything),
        failures=sum(bool(answer.failure) for answer in everything),
        canary={green: sum(one.revision == green for one in found) for green, found in shared.items()},
        shared={green: len(found) for green, found in shared.items()},
        conversations=sum(bool(turns) for turns in held),
        mixed=len(mixed),
        untold=sum(not any(answer.changed for answer in turns) for turns in mixed),
    )


def versions(moments: Sequence[Moment], answers: Iterable[Answer]) -> dict[str, str]:
    """By revision, the version of the anchor that its answers name; "base" where they name none."""
    named = {answer.revision: answer.anchor or "base" for answer in answers if answer.revision}
    return {name: named.get(name, name) for name in _revisions(moments)}


def _revisions(moments: Sequence[Moment]) -> tuple[str, ...]:
    seen = Counter(name for moment in moments for name in (*moment.weights, *moment.ready))
    return tuple(seen)


def _rates(edges: Sequence[float], answers: Sequence[Answer], revision: str) -> tuple[float, ...]:
    inside = [one for one in answers if one.revision == revision and not one.failure]
    return tuple(len(_within(inside, edge, edge + BIN_S)) / BIN_S for edge in edges)


def _within(answers: Iterable[Answer], begin: float, end: float) -> list[Answer]:
    return [answer for answer in answers if begin <= answer.began < end]


def _spans(moments: Sequence[Moment], start: float) -> Iterator[Span]:
    """Steps; each lasts until the next thing that is seen."""
    bounds = [(step, next(iter(group)).at - start) for step, group in groupby(moments, lambda one: one.step)]
    for (step, begin), (_, end) in pairwise([*bounds, ("", moments[-1].at - start)]):
        if step:
            yield Span(step, begin, end)


def _marks(moments: Sequence[Moment], start: float) -> Iterator[Mark]:
    """Verdicts when they are first seen, and the moment in which another revision serves."""
    for before, after in pairwise(moments):
        if after.verdict in {"Pass", "Fail"} and after.verdict != before.verdict:
            yield Mark(after.at - start, ": ".join(filter(None, (after.verdict, after.reason))))
        if before.serving and after.serving != before.serving:
            yield Mark(after.at - start, "takes over")


def _shared_windows(moments: Sequence[Moment]) -> Iterator[tuple[str, float, float]]:
    """Times in which a canary had a weight below 100, from the second moment on: gateways take a while."""

    def weighed(moment: Moment) -> str:
        shared = 0 < moment.weights.get(moment.green, 0) < sum(moment.weights.values())
        return moment.green if shared else ""

    for green, group in groupby(moments, weighed):
        seen = list(group)
        if green and len(seen) > 1:
            yield green, seen[1].at, seen[-1].at
