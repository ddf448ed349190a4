"""What is known of both sides since the soak began, small enough for a status field."""

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, cast

from zerolayer_operator.decide.evidence import Histogram, Interval, Side
from zerolayer_operator.decide.sequential import Counts, Process, Rules, after
from zerolayer_operator.decide.verdict_terms import TRAFFIC, Check, Terms

_FORMAT: Final = 1
_LARGEST: Final = 10**18
"""No soak counts so far; what a hand has written may, and what is larger can't be reckoned with."""

_BOUND_SLACK: Final = 0.9
"""Bounds of buckets are rounded: one that is a tenth short of the factor has reached it."""

_TAIL_TOLERANCE: Final = 0.2
"""What green's tail may have beyond blue's, as a share of the tail that the quantile leaves."""

_INTERVALS_AT_LEAST: Final = 4
"""Intervals that have to agree before one comparison can fail."""

_ERROR_RATIOS: Final = (3.0, 10.0, 40.0)
_TAIL_RATIOS: Final[Mapping[float, tuple[float, ...]]] = {
    0.5: (1.2, 1.5, 1.9),
    0.95: (2.0, 5.0, 12.0),
    0.99: (3.0, 10.0, 40.0),
}
QUANTILES: Final = tuple(_TAIL_RATIOS)
ERRORS_KEY: Final = "errors"

TIMES: Final[Mapping[Check, Callable[[Side], Histogram]]] = {
    Check.FIRST_TOKEN: lambda side: side.first_tokens,
    Check.TOKEN_GAPS: lambda side: side.token_gaps,
}
"""Where the times of a check are counted."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Both sides since the soak began, and what the comparisons have come to; immutable.

    Attributes:
        intervals: Compared so far.
        blue: All that blue counted in them.
        green: All that green did.
        processes: By the comparison's name, `ERRORS_KEY` or as `quantile_key` tells.
        terms: What of the terms the comparisons depend on; with others they begin anew.
    """

    intervals: int = 0
    blue: Side = field(default_factory=Side)
    green: Side = field(default_factory=Side)
    processes: Mapping[str, Process] = field(default_factory=dict[str, Process])
    terms: str = ""

    def add(self, interval: Interval, terms: Terms) -> "Evidence":
        """With one interval more; begun anew where the terms are not those of before."""
        print_of_terms = _print(terms)
        if self.terms and self.terms != print_of_terms:
            return Evidence().add(interval, terms)
        cap = threshold(terms) / _INTERVALS_AT_LEAST
        processes = dict(self.processes)
        for key, counts, ratios, tolerance in _comparisons(self, interval, terms):
            rules = Rules(ratios, tolerance, terms.cluster, cap)
            process = after(processes.get(key, Process()), counts, rules)
            if process.intervals:
                processes[key] = process
        return Evidence(
            self.intervals + 1,
            self.blue + interval.blue,
            self.green + interval.green,
            processes,
            print_of_terms,
        )

    def noting(self, repeats: int, different: int) -> "Evidence":
        """With at least so many repeats of green's, and so many among them that differed.

        One difference is a failed check: none may be lost with an interval that does not count.
        """
        green = replace(
            self.green,
            repeats=max(self.green.repeats, repeats),
            repeats_different=max(self.green.repeats_different, different),
        )
        return replace(self, green=green)

    def to_text(self) -> str:
        """Compact JSON, at most 4 kB for histograms of 40 bounds."""
        value = {
            "v": _FORMAT,
            "t": self.terms,
            "n": self.intervals,
            "b": _side_value(self.blue),
            "g": _side_value(self.green),
            "p": {
                key: [process.intervals, process.excess, process.residuals, *process.logs]
                for key, process in self.processes.items()
            },
        }
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_text(cls, text: str | None) -> "Evidence":
        """What `to_text` wrote; nothing at all where it is anything else, so that the soak begins anew."""
        try:
            return _evidence(json.loads(text or ""))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return cls()


def comparisons_on(terms: Terms) -> int:
    """Comparisons that share alpha: one of errors, and one for each quantile of each time."""
    return sum(1 if check is Check.ERRORS else len(QUANTILES) for check in terms.on & TRAFFIC)


def threshold(terms: Terms) -> float:
    """What the logarithm of a comparison's evidence has to reach to fail: ln(comparisons / alpha)."""
    return math.log(max(1, comparisons_on(terms)) / terms.alpha)


def quantile_key(check: Check, quantile: float) -> str:
    """Name of the comparison of a quantile, such as ``firstToken.p95``."""
    return f"{check}.p{round(quantile * 100)}"


def beyond(past: Histogram, quantile: float, green: Histogram, slower: float) -> tuple[float, float] | None:
    """The bounds that are compared: blue's first one above its quantile, and green's that is a factor longer.

    Args:
        past: Blue's times so far: what is compared next has no say in it.
        quantile: In (0, 1).
        green: For its bounds.
        slower: The factor.

    Returns:
        Seconds on blue and on green; ``None`` where blue's times are too few or green has no such bound.
    """
    total = past.total
    if total * (1 - quantile) < 1:
        return None
    place = bisect_left(list(accumulate(past.counts)), quantile * total)
    if place >= len(past.bounds):
        return None
    bound = past.bounds[place]
    longer = bisect_left(green.bounds, bound * slower * _BOUND_SLACK)
    return None if longer >= len(green.bounds) else (bound, green.bounds[longer])


_ALTERNATIVES: Final = {ERRORS_KEY: len(_ERROR_RATIOS)} | {
    quantile_key(check, quantile): len(ratios) for check in TIMES for quantile, ratios in _TAIL_RATIOS.items()
}
_Comparison = tuple[str, Counts, tuple[float, ...], float]


def _comparisons(past: Evidence, interval: Interval, terms: Terms) -> Iterator[_Comparison]:
    blue, green = interval.blue, interval.green
    if Check.ERRORS in terms.on:
        counts = Counts(
            green.errors, green.requests, blue.errors, blue.requests, past.blue.errors, past.blue.requests
        )
        yield ERRORS_KEY, counts, _ERROR_RATIOS, terms.error_tolerance
    for check, times in TIMES.items():
        if check in terms.on:
            yield from _quantiles(check, times, past, interval, terms)


def _quantiles(
    check: Check, times: Callable[[Side], Histogram], past: Evidence, interval: Interval, terms: Terms
) -> Iterator[_Comparison]:
    blue, green, before = times(interval.blue), times(interval.green), times(past.blue)
    if not green.counts or not blue.counts or blue.bounds != before.bounds:
        return
    for quantile, ratios in _TAIL_RATIOS.items():
        bounds = beyond(before, quantile, green, terms.slower)
        if bounds is None:
            continue
        counts = Counts(
            green.beyond(bounds[1]),
            green.total,
            blue.beyond(bounds[0]),
            blue.total,
            before.beyond(bounds[0]),
            before.total,
            _each(green, interval.green),
            _each(blue, interval.blue),
        )
        yield quantile_key(check, quantile), counts, ratios, (1 - quantile) * _TAIL_TOLERANCE


def _each(times: Histogram, side: Side) -> float:
    """Times that one request stands for: the gaps between its tokens share its fate."""
    return max(1.0, times.total / max(1, side.requests))


def _print(terms: Terms) -> str:
    on = ",".join(sorted(terms.on & TRAFFIC))
    return f"{on};{terms.alpha};{terms.error_tolerance};{terms.slower};{terms.cluster}"


def _side_value(side: Side) -> list[Any]:
    times = [[list(item.bounds), list(item.counts)] for item in (side.first_tokens, side.token_gaps)]
    return [side.requests, side.errors, *times, side.repeats, side.repeats_different]


def _evidence(value: Any) -> Evidence:
    if value["v"] != _FORMAT:
        raise ValueError("another format")
    processes = {key: _process(key, item) for key, item in cast("dict[str, Any]", value["p"]).items()}
    return Evidence(_count(value["n"]), _side(value["b"]), _side(value["g"]), processes, _text(value["t"]))


def _side(value: Any) -> Side:
    requests, errors, first_tokens, token_gaps, repeats, different = value
    if errors > requests or different > repeats:
        raise ValueError("more bad ones than all")
    return Side(
        _count(requests),
        _count(errors),
        _histogram(first_tokens),
        _histogram(token_gaps),
        _count(repeats),
        _count(different),
    )


def _histogram(value: Any) -> Histogram:
    bounds, counts = value
    histogram = Histogram(tuple(map(_finite, bounds)), tuple(map(_count, counts)))
    if bool(counts) and len(counts) != len(bounds) + 1:
        raise ValueError("counts don't fit bounds")
    return histogram


def _process(key: str, value: Any) -> Process:
    intervals, excess, residuals, *logs = value
    if len(logs) != _ALTERNATIVES[key]:
        raise ValueError("other alternatives")
    return Process(_count(intervals), tuple(map(_finite, logs)), _finite(excess), _count(residuals))


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError("no count")
    return value


def _finite(value: Any) -> float:
    if type(value) not in {int, float} or not -_LARGEST <= value <= _LARGEST:
        raise ValueError("no number that can be reckoned with")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
