"""A verdict's figures in words."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from zerolayer_operator.decide.evidence import Golden, Histogram, Side
from zerolayer_operator.decide.verdict_terms import Check, CheckResult, State
from zerolayer_operator.observe.first_tokens import quantile as quantile_of

_Z: Final = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 %."""

OFF: Final = "off in this pool"
NO_DDS: Final = "off: workers have no domain decision rules"
NO_REPEATS: Final = "no deterministic request was asked again on green"
NO_SHARED_INTERVAL: Final = "requests: in no interval on both sides"
NONE_EXPECTED: Final = "the golden set has no question with an expected answer"
NONE_KEPT: Final = "the golden set has no question whose answer should stay"
NO_ANSWERS: Final = "the golden set's expected answers are not known yet"
NO_SIMILARITY: Final = "the similarity of the golden set's answers is not known yet"
TIMES: Final[Mapping[Check, str]] = {
    Check.FIRST_TOKEN: "time to the first token",
    Check.TOKEN_GAPS: "time between tokens",
}


def wilson(bad: int, of: int) -> tuple[float, float]:
    """The interval of 95 % of a share after Wilson (JASA 1927), for reports: no decision rests on it."""
    if of <= 0:
        return 0.0, 1.0
    share, z2 = bad / of, _Z * _Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z / (1 + z2 / of) * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    return middle - half if bad else 0.0, middle + half if bad < of else 1.0


def seconds_at(times: Histogram, quantile: float) -> float:
    """Seconds that a share of the times did not exceed, as Prometheus reckons it."""
    buckets = dict(zip((*times.bounds, math.inf), accumulate(times.counts), strict=True))
    return quantile_of(buckets, quantile) or 0.0


def errors(blue: Side, green: Side, log_evidence: float, needed: float) -> str:
    """How both error rates compare."""
    return (
        f"error rate {_share(green.errors, green.requests)} of {green.requests} on green against "
        f"{_share(blue.errors, blue.requests)} of {blue.requests} on blue in the same time "
        f"({_ratio(log_evidence, needed)})"
    )


def slower(
    check: Check, quantile: float, blue: Histogram, green: Histogram, *, log_evidence: float, needed: float
) -> str:
    """How a quantile of both sides' times compares, and their medians."""
    return (
        f"{TIMES[check]}: p{round(quantile * 100)} {_time(seconds_at(green, quantile))} of {green.total} on "
        f"green against {_time(seconds_at(blue, quantile))} of {blue.total} on blue in the same time "
        f"({_ratio(log_evidence, needed)})"
    )


def nothing(what: str, on_blue: bool, on_green: bool) -> str:
    """Where there is nothing to compare."""
    sides = " and ".join(side for side, has in (("green", on_green), ("blue", on_blue)) if not has)
    return f"{what}: none on {sides} in the compared intervals"


def not_compared(check: Check, unseen: Sequence[float], total: int) -> str:
    """Where there is not enough to compare, or the histograms don't reach far enough."""
    which = ", ".join(f"p{round(quantile * 100)}" for quantile in unseen)
    why = f"{which} can't be compared yet" if unseen else "too few"
    return f"{TIMES[check]}: {why} with {total} on green"


def repeats(blue: Side, green: Side, golden: Golden) -> str:
    """What became of deterministic requests that were asked again."""
    asked = f"; {golden.repeats_different} of {golden.repeats} questions of the golden set did on green"
    return (
        f"{green.repeats_different} of {green.repeats} deterministic requests got another answer when asked "
        f"again on green, {blue.repeats_different} of {blue.repeats} on blue{asked if golden.repeats else ''}"
    )


def unknown(golden: Golden | None, otherwise: str) -> str:
    """Why the golden set has said nothing."""
    return golden.unknown if golden is not None and golden.unknown else otherwise


def answers(golden: Golden, required: float) -> str:
    """How many expected answers were right."""
    return (
        f"{golden.right} of {golden.expected} golden answers as expected on green, {golden.blue_right} on "
        f"blue; {required:.0%} are required{_named(golden.failing)}"
    )


def similarity(golden: Golden) -> str:
    """How similar answers are that should not change."""
    return (
        f"similarity {golden.similarity:.4f} of {golden.kept} golden answers that should not change; "
        f"{golden.threshold:.4f} is required{_named(golden.failing)}"
    )


def _named(failing: Sequence[str]) -> str:
    return f"; such as {', '.join(failing)}" if failing else ""


def query(name: str, detail: str) -> str:
    """What a query came to."""
    return f"query {name}: {detail}" if detail else f"query {name}"


def too_few(samples: int, needed: int) -> str:
    """Where there are not enough requests for a verdict."""
    return f"{samples} of the {needed} requests on green that a verdict needs"


def no_worse(checks: Sequence[CheckResult], samples: int) -> str:
    """Where nothing speaks against green."""
    asked = [check for check in checks if check.state is State.OK]
    if not samples:
        return f"no worse than blue, without requests of users: {', '.join(check.name for check in asked)}"
    return f"no worse than blue over {samples} requests in {len(asked)} checks"


def _ratio(log_evidence: float, needed: float) -> str:
    return f"likelihood ratio {_power(log_evidence)}, needs {_power(needed)}"


def _power(log: float) -> str:
    if log > math.log(1e6):
        digits = int(log / math.log(10))
        return f"{math.exp(log - digits * math.log(10)):.1f}e{digits}"
    return f"{math.exp(log):.3g}" if log < math.log(1000) else f"{math.exp(log):.0f}"


def _share(bad: int, of: int) -> str:
    low, high = wilson(bad, of)
    return f"{100 * bad / of:.2g} % (95 %: {100 * low:.2g} to {100 * high:.2g})"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
