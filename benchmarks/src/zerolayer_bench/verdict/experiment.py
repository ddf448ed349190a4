"""Simulated updates, judged at every interval as the operator does, each to its end."""

import math
import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from zerolayer_bench.verdict.traffic import Harm, Noise, Pool, golden, intervals
from zerolayer_operator.decide.evidence import Histogram
from zerolayer_operator.decide.verdict import Check, Evidence, Outcome, Terms, judge
from zerolayer_operator.decide.verdict_evidence import QUANTILES, TIMES, beyond, comparisons_on

CALM: Final = Noise()
ROUGH: Final = Noise(
    load=0.5, pace=0.15, pod=0.3, memory=0.9, bursts=0.06, stalls=0.03, incidents=0.005, errors=0.002
)
"""Worse than most pools are: a pod may be twice as slow as another for minutes."""

GOLDEN_AT: Final = 3
"""Interval at which the answers to the golden set are there."""


@dataclass(frozen=True, slots=True)
class Update:
    """An update to be simulated.

    Attributes:
        seed: Of all its chance.
        noise: How unruly its traffic is.
        harm: What is wrong with green.
        terms: What the verdict goes by.
        looks: Intervals of the soak.
        pool: The pool; ``None`` for one at random.
        peek: Whether it is also told when a test for one look would have failed, see `Ended.peeked`.
    """

    seed: int
    noise: Noise
    harm: Harm
    terms: Terms
    looks: int
    pool: Pool | None = None
    peek: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How an update ended.

    Attributes:
        outcome: Of the last look.
        reason: Likewise.
        looks: Until then.
        samples: Green's requests until then.
        peeked: Whether a test that is made for one look, repeated at every one, would have failed it.
    """

    outcome: str
    reason: str
    looks: int
    samples: int
    peeked: bool = False

    @property
    def failed(self) -> bool:
        """Whether green was rolled back."""
        return self.outcome == Outcome.FAIL


def play(update: Update) -> Ended:
    """Judges one update at every interval until it fails or its soak is over."""
    random = np.random.default_rng(update.seed)
    pool = _any_pool(random) if update.pool is None else update.pool
    answers = golden(update.harm, random) if Check.GOLDEN_ANSWERS in update.terms.on else None
    evidence, looks, peeked = Evidence(), 0, False
    verdict = judge(evidence, update.terms)
    for interval in intervals(pool, update.noise, update.harm, update.looks, random):
        looks += 1
        evidence = evidence.add(interval, update.terms)
        verdict = judge(evidence, update.terms, answers if looks > GOLDEN_AT else None)
        peeked = peeked or (update.peek and _one_look_fails(evidence, update.terms))
        if verdict.outcome is Outcome.FAIL:
            break
    return Ended(verdict.outcome, verdict.reason, looks, evidence.green.requests, peeked)


def play_all(updates: Iterable[Update], workers: int) -> Iterator[Ended]:
    """Plays updates in so many processes, this one if it is one; yields how they ended, in their order."""
    if workers == 1:
        yield from map(play, updates)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as executor:
        yield from executor.map(play, updates, chunksize=20)


def upper_bound(failed: int, of: int, level: float) -> float:
    """The upper end of the one-sided interval of Clopper & Pearson (Biometrika 1934) for a share.

    It is the share at which as few as `failed` are seen with a probability of 1 - `level`, by bisection.
    """
    if failed >= of:
        return 1.0
    low, high = failed / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(failed, of, middle) > 1 - level else (low, middle)
    return high


def _at_most(failed: int, of: int, share: float) -> float:
    """Probability of at most so many of so many."""
    logs = (
        math.lgamma(of + 1)
        - math.lgamma(k + 1)
        - math.lgamma(of - k + 1)
        + k * math.log(share)
        + (of - k) * math.log1p(-share)
        for k in range(failed + 1)
    )
    return math.fsum(map(math.exp, logs)) if 0 < share < 1 else float(share <= 0)


def _any_pool(random: np.random.Generator) -> Pool:
    return Pool(
        pods=int(random.integers(1, 20)),
        weight=float(random.choice([0.05, 0.1, 0.1, 0.25, 0.5])),
        requests=float(np.exp(random.uniform(math.log(60), math.log(1200)))),
    )


def _one_look_fails(evidence: Evidence, terms: Terms) -> bool:
    """Whether a z-test of two shares (pooled variance), made for one look, finds green worse by now."""
    blue, green = evidence.blue, evidence.green
    if green.requests < terms.min_samples:
        return False
    pairs = [(green.errors, green.requests, blue.errors, blue.requests)]
    for times in TIMES.values():
        pairs += [*_tails(times(blue), times(green), terms)]
    level = terms.alpha / comparisons_on(terms)
    return any(_z_test(*pair) < level for pair in pairs)


def _tails(blue: Histogram, green: Histogram, terms: Terms) -> Iterator[tuple[int, int, int, int]]:
    for quantile in QUANTILES:
        bounds = beyond(blue, quantile, green, terms.slower)
        if bounds is not None:
            yield green.beyond(bounds[1]), green.total, blue.beyond(bounds[0]), blue.total


def _z_test(bad: int, of: int, blue_bad: int, blue_of: int) -> float:
    """One-sided p-value."""
    share = (bad + blue_bad) / (of + blue_of)
    deviation = math.sqrt(share * (1 - share) * (1 / of + 1 / blue_of))
    if not deviation:
        return 1.0
    return 0.5 * math.erfc((bad / of - blue_bad / blue_of) / deviation / math.sqrt(2))
