"""An always-valid test of whether green has more bad events than blue, however often one looks.

One interval. Green has ``a`` bad events of ``n``, blue ``b`` of ``m``. The null hypothesis is that green's
probability is at most blue's plus a tolerance ``d``, whatever blue's is in this interval. For an alternative
ratio ``r > 1`` let ``x = r (n + m) / (r n + m)`` and ``y = (n + m) / (r n + m)``. Then

    E = x^a  y^b  exp(-d n (x - 1))

has an expectation of at most 1: each factor's is at most ``1 + p (x - 1) <= exp(p (x - 1))``, and ``n (x -
1) + m (y - 1) = 0``. It is the likelihood ratio of "the next event falls on green with the odds r n : m"
against "n : m" for given totals, in which a rate that both sides share cancels out however it changes in
time (Lindon & Malek, Anytime-Valid Inference for Multinomial Count Data, NeurIPS 2022; for two Bernoulli
streams Turner, Ly & Grünwald, Generic E-variables for exact sequential k-sample tests that allow for
optional stopping, J. Stat. Plan. Inference 2024).

Requests that share a fate. Where up to ``c`` requests depend on each other in any way, ``a``, ``b``, ``n``
and ``m`` are divided by ``c``: with ``Y`` in [0, 1] the share of bad ones in such a cluster, ``E[x^Y] <= 1 +
(x - 1) E[Y]`` since ``x^Y`` is convex in Y, so the bound above holds for clusters as for requests. The
divisor is the larger of a given one and what blue's counts of past intervals vary by beyond a binomial
(Pearson's dispersion, as in McCullagh & Nelder, Generalized Linear Models, 1989); it never looks at green.

One interval is never enough. What an interval adds is capped: an e-value cut from above is one still, and an
incident that happens once, a node lost or a stalled batch, does not decide.

Over time. E-values of intervals multiply, and by Ville's inequality such a product ever reaches 1 / alpha
with a probability of at most alpha. Alternatives are averaged (a mixture: Robbins, Ann. Math. Stat. 1970),
and so are instants from which on green is worse, with the weights 1 / (k (k + 1)) which sum to 1, so that
hours of good times don't hide a harm that begins later (Shin, Ramdas & Rinaldo, E-detectors: a nonparametric
framework for sequential change detection, New Engl. J. Stat. Data Sci. 2023).
"""

import math
from dataclasses import dataclass
from typing import Final

_NEVER: Final = -math.inf
_PRIOR_INTERVALS: Final = 4
"""Intervals that the given cluster counts for beside those that blue's spread was seen in."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Bad events of both sides in one interval.

    Attributes:
        green: Bad ones on green.
        green_of: All on green.
        blue: Bad ones on blue.
        blue_of: All on blue.
        past_blue: Bad ones on blue before this interval.
        past_blue_of: All on blue before this interval.
        green_each: Events that one request of green's stands for, such as gaps between its tokens.
        blue_each: Events that one request of blue's stands for.
    """

    green: int
    green_of: int
    blue: int
    blue_of: int
    past_blue: int
    past_blue_of: int
    green_each: float = 1.0
    blue_each: float = 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    """How one comparison is made.

    Attributes:
        alternatives: Ratios of green's probability to blue's that are looked for, each above 1.
        tolerance: What green's probability may be beyond blue's.
        cluster: Requests that may share one fate, at least 1.
        cap: The most that one interval may add to the logarithm of the evidence.
    """

    alternatives: tuple[float, ...]
    tolerance: float
    cluster: float
    cap: float


@dataclass(frozen=True, slots=True)
class Process:
    """The evidence of one comparison so far.

    Attributes:
        intervals: Intervals that both sides had events in.
        logs: For each alternative, the logarithm of the weighted sum of its products over all beginnings.
        excess: Sum of the squared Pearson residuals of blue's counts.
        residuals: How many those are.
    """

    intervals: int = 0
    logs: tuple[float, ...] = ()
    excess: float = 0.0
    residuals: int = 0

    @property
    def log_evidence(self) -> float:
        """Natural logarithm of the evidence against the null hypothesis: of a bet of 1, what it is now."""
        not_begun = 1 / (self.intervals + 1)
        largest = max(self.logs, default=_NEVER)
        if largest < 0:
            return math.log(not_begun + math.fsum(map(math.exp, self.logs)) / max(1, len(self.logs)))
        shifted = math.fsum(math.exp(log - largest) for log in self.logs) / len(self.logs)
        return largest + math.log(shifted + not_begun * math.exp(-largest))

    def cluster(self, given: float) -> float:
        """Requests that are taken to share one fate."""
        seen = (_PRIOR_INTERVALS * given + self.excess) / (_PRIOR_INTERVALS + self.residuals)
        return max(given, seen)


def after(process: Process, counts: Counts, rules: Rules) -> Process:
    """The evidence with one interval more; as it was where a side had no events in it."""
    if counts.green_of <= 0 or counts.blue_of <= 0:
        return process
    k = process.intervals + 1
    begins = -math.log(k * (k + 1))
    logs = process.logs or (_NEVER,) * len(rules.alternatives)
    gains = _gains(counts, rules, process.cluster(rules.cluster))
    grown = tuple(_log_sum(log, begins) + gain for log, gain in zip(logs, gains, strict=True))
    residual = _squared_residual(counts)
    if residual is None:
        return Process(k, grown, process.excess, process.residuals)
    return Process(k, grown, process.excess + residual, process.residuals + 1)


def _gains(counts: Counts, rules: Rules, cluster: float) -> list[float]:
    """Logarithm of the interval's e-value for each alternative."""
    per_green = counts.green_each * max(1.0, min(cluster, counts.green_of / counts.green_each))
    per_blue = counts.blue_each * max(1.0, min(cluster, counts.blue_of / counts.blue_each))
    a, n = counts.green / per_green, counts.green_of / per_green
    b, m = counts.blue / per_blue, counts.blue_of / per_blue
    gains: list[float] = []
    for ratio in rules.alternatives:
        y = (n + m) / (ratio * n + m)
        x = ratio * y
        gain = a * math.log(x) + b * math.log(y) - rules.tolerance * n * (x - 1)
        gains.append(min(gain, rules.cap))
    return gains


def _squared_residual(counts: Counts) -> float | None:
    """How far blue's count is from what its past lets expect, in units of a binomial's variance, squared."""
    if counts.past_blue_of <= 0:
        return None
    of, past_of = counts.blue_of / counts.blue_each, counts.past_blue_of / counts.blue_each
    share = (counts.past_blue / counts.blue_each + 0.5) / (past_of + 1)
    variance = of * share * (1 - share) * (1 + of / (past_of + 1))
    return (counts.blue / counts.blue_each - of * share) ** 2 / variance


def _log_sum(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high))
