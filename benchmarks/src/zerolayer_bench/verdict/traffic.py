"""Traffic of a pool during a canary, as its workers would count it, as unruly as the real one is.

Both sides share a load that wanders and bursts, and times that grow with it. Each pod has its own pace, its
own wandering on top, stalls that hit all that it runs, and incidents in which a good part of its requests
fail. The requests of a batch share a fate. Pods of both sides draw all of that from the same distributions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zerolayer_operator.decide.evidence import Golden, Histogram, Interval, Side

BOUNDS: Final = (
    *(
        round(digit * decade, 4)
        for decade in (0.001, 0.01, 0.1, 1.0)
        for digit in (1, 1.4, 1.8, 2.5, 3.5, 5, 7)
    ),
    *(10.0, 14.0, 20.0, 30.0, 42.0, 60.0, 120.0, 300.0, 600.0),
)
"""Upper bounds of the workers' histograms in seconds."""

_EDGES: Final = np.log(np.array(BOUNDS))
_BATCH: Final = 8
_GRID: Final = np.linspace(math.log(0.0005), math.log(20.0), 600)
_GAP_SPREAD: Final = 0.35

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Noise:
    """How unruly traffic is; each standard deviation is of a logarithm.

    Attributes:
        load: Of the load that both sides share.
        pace: Of a pod's own pace, which lasts.
        pod: Of a pod's times from interval to interval.
        memory: Correlation of one interval's noise with the next one's, in [0, 1).
        bursts: Share of the intervals with three times the load.
        stalls: Share of a pod's intervals in which a stall holds all it runs up for seconds.
        incidents: Share of a pod's intervals in which 3 in 10 of its requests fail.
        errors: Share of requests that fail otherwise.
    """

    load: float = 0.3
    pace: float = 0.08
    pod: float = 0.15
    memory: float = 0.7
    bursts: float = 0.03
    stalls: float = 0.01
    incidents: float = 0.001
    errors: float = 0.001


@dataclass(frozen=True, slots=True)
class Harm:
    """What is wrong with green; nothing by default.

    Attributes:
        errors: Share of its requests that fail beside those that fail anyway.
        slower: Factor on its times.
        different: Share of its repeated deterministic requests with another answer.
        right: Share of the golden set's expected answers that it gives.
        begins: Interval from which on that is so.
    """

    errors: float = 0.0
    slower: float = 1.0
    different: float = 0.0
    right: float = 0.97
    begins: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool during a canary.

    Attributes:
        pods: Blue's.
        weight: Share of the requests that go to green, in (0, 1).
        requests: Of both sides in an ordinary interval.
        tokens: Gaps between tokens in an answer.
    """

    pods: int
    weight: float
    requests: float
    tokens: int = 40

    @property
    def green_pods(self) -> int:
        """The fewest that carry green's share."""
        return math.ceil(self.weight * self.pods / (1 - self.weight))


def intervals(
    pool: Pool, noise: Noise, harm: Harm, count: int, random: np.random.Generator
) -> Iterator[Interval]:
    """What both sides count, interval after interval."""
    shared = noise.load * _wandering(count, 1, 0.9, random)[:, 0]
    shared += math.log(3) * (random.random(count) < noise.bursts)
    requests = random.poisson(pool.requests * np.exp(shared))
    to_green = random.binomial(requests, pool.weight)
    blue = _Side(_Load(pool.pods, requests - to_green, shared, pool.tokens), noise, Harm(), random)
    green = _Side(_Load(pool.green_pods, to_green, shared, pool.tokens), noise, harm, random)
    for index in range(count):
        yield Interval(blue.at(index), green.at(index))


def golden(harm: Harm, random: np.random.Generator) -> Golden:
    """What a golden set of 50 expected answers and 50 that should stay comes to."""
    return Golden(50, int(random.binomial(50, harm.right)), 2, 50, 0.995, 0.98)


@dataclass(frozen=True, slots=True)
class _Load:
    """What comes to a side: its requests by interval, and the logarithm of the load that both sides share."""

    pods: int
    requests: Counts
    shared: Floats
    tokens: int


class _Side:
    """All intervals of one side."""

    def __init__(self, load: _Load, noise: Noise, harm: Harm, random: np.random.Generator) -> None:
        count, pods = len(load.requests), load.pods
        harmed = np.arange(count) >= harm.begins
        per_pod = random.multinomial(load.requests, np.full(pods, 1 / pods))
        slower = math.log(harm.slower) * harmed[:, None]
        pace = 0.3 * load.shared[:, None] + noise.pace * random.standard_normal(pods) + slower
        pace = pace + noise.pod * _wandering(count, pods, noise.memory, random)
        stalled = random.random((count, pods)) < noise.stalls
        failing = 0.3 * (random.random((count, pods)) < noise.incidents)
        share = 1 - (1 - noise.errors) * (1 - failing) * (1 - harm.errors * harmed[:, None])
        self._requests = load.requests
        self._errors = random.binomial(per_pod, share).sum(axis=1)
        self._first = _first_tokens(per_pod, pace, stalled, random)
        self._gaps = _gaps(per_pod, pace, stalled, load.tokens, random)
        self._repeats = random.random(count) < 0.5
        self._different = self._repeats & (random.random(count) < harm.different * harmed)

    def at(self, index: int) -> Side:
        """What the side counted in one interval."""
        return Side(
            int(self._requests[index]),
            int(self._errors[index]),
            Histogram(BOUNDS, tuple(self._first[index].tolist())),
            Histogram(BOUNDS, tuple(self._gaps[index].tolist())),
            int(self._repeats[index]),
            int(self._different[index]),
        )


def _wandering(count: int, columns: int, memory: float, random: np.random.Generator) -> Floats:
    """Autoregressive noise of variance 1, one column each."""
    steps = random.standard_normal((count, columns))
    steps[1:] *= math.sqrt(1 - memory * memory)
    for index in range(1, count):
        steps[index] += memory * steps[index - 1]
    return steps


def _batches(per_pod: Counts) -> tuple[Counts, Counts]:
    """For each batch its place among pods and intervals, flattened, and its requests."""
    flat = per_pod.ravel()
    full, rest = flat // _BATCH, flat % _BATCH
    places = np.concatenate([np.repeat(np.arange(flat.size), full), np.flatnonzero(rest)])
    sizes = np.concatenate([np.full(int(full.sum()), _BATCH), rest[rest > 0]])
    return places, sizes


def _first_tokens(
    per_pod: Counts, pace: Floats, stalled: NDArray[np.bool_], random: np.random.Generator
) -> Counts:
    """Times to the first token: counts by interval and bucket."""
    places, sizes = _batches(per_pod)
    middle = math.log(0.25) + pace.ravel()[places] + 0.15 * random.standard_normal(places.size)
    delays = stalled.ravel()[places] * random.uniform(1, 5, places.size)
    of = np.repeat(np.arange(places.size), sizes)
    times = np.exp(middle[of] + 0.5 * random.standard_normal(of.size)) + delays[of]
    buckets = np.searchsorted(_EDGES, np.log(times))
    return _counted(places[of] // per_pod.shape[1], buckets, np.ones(of.size), per_pod.shape[0])


def _gaps(
    per_pod: Counts, pace: Floats, stalled: NDArray[np.bool_], tokens: int, random: np.random.Generator
) -> Counts:
    """Times between tokens: counts by interval and bucket."""
    places, sizes = _batches(per_pod)
    middle = math.log(0.03) + pace.ravel()[places] + 0.15 * random.standard_normal(places.size)
    of = random.poisson(sizes * tokens)
    # A stall holds one gap of each request up.
    held = sizes * stalled.ravel()[places]
    rows = random.multinomial(of, _TABLE[np.searchsorted(_GRID, middle).clip(0, _GRID.size - 1)])
    counts = np.zeros((per_pod.shape[0], len(BOUNDS) + 1), dtype=np.int64)
    np.add.at(counts, places // per_pod.shape[1], rows)
    late = np.searchsorted(_EDGES, np.log(random.uniform(1, 5, places.size)))
    np.add.at(counts, (places // per_pod.shape[1], late), held)
    return counts


def _counted(rows: Counts, buckets: Counts, weights: Floats, count: int) -> Counts:
    width = len(BOUNDS) + 1
    flat = np.bincount(rows * width + buckets, weights=weights, minlength=count * width)
    return flat.reshape(count, width).astype(np.int64)


def _bucket_shares(middle: float) -> list[float]:
    below = [0.5 * (1 + math.erf((edge - middle) / (_GAP_SPREAD * math.sqrt(2)))) for edge in _EDGES]
    return [high - low for low, high in zip([0.0, *below], [*below, 1.0], strict=True)]


_TABLE: Final = np.array([_bucket_shares(middle) for middle in _GRID])
"""For middles of a lognormal distribution on `_GRID` the share of each bucket."""
