"""Whether Prometheus' figures about a pool's load can be trusted; no I/O.

What is not known is no zero: a window that is chosen by a load which seems to be gone gives up workers that
are needed. So whatever is missing, old, impossible or contradicted by the workers themselves is unknown. The
reasons hold no figures: what goes on is to be told once, though its figures differ each time.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from zerolayer_operator.observe import load_query as query
from zerolayer_operator.observe.load import MEAN_S, STALE_S, STEP_S, Counted, LoadSample, ObservedLoad
from zerolayer_operator.observe.load_query import LoadSeries
from zerolayer_operator.observe.load_source import NO_WORKER, LoadTarget
from zerolayer_operator.observe.plausible import implausible, is_number, no_number

_RATES: Final = (query.ARRIVALS, query.BUSY, query.QUEUED, query.FINISHED, query.SERVICE)
_STEPS: Final = MEAN_S // STEP_S
"""Samples in a minute."""

_ABSENT: Final = 2
"""Samples without figures, in succession, that are no gap any more."""

_SETTLED_S: Final = 90
"""Prometheus needs to find a worker and scrape it twice before that one's rates are in its figures."""

_PATIENCE_S: Final = 120
"""Time after which the operator's own scrapes must have given something to compare with."""

_NEAR_S: Final = 30
"""Prometheus' newest scrapes may be that much older than the operator's."""

_FACTOR: Final = 3.0
_FLOORS: Final = {"busy slots": 0.3, "requests per second": 0.1, "slots per worker": 0.0}
"""What is compared, and below which value a factor says nothing."""

_SCRAPES: Final = (
    "check that it scrapes the pool's workers at least every 15 s, with the labels that the operator's "
    "PodMonitors give their series"
)
_NOT_ASKED: Final = (
    f"the operator has not asked Prometheus for the pool's load within {STALE_S} s; wait a minute, or "
    "look at the operator's log"
)
_RIGHT_ONE: Final = (
    "check that it is the Prometheus which scrapes these workers, and what it does to their series"
)


def checked(series: LoadSeries, target: LoadTarget, own: ObservedLoad, now: float) -> ObservedLoad:
    """The load that Prometheus' figures tell, and why it is unknown where they can't be trusted.

    Args:
        series: Prometheus' figures.
        target: The workers that they are about.
        own: What the operator knows from the workers themselves.
        now: In seconds since 1970.
    """
    judged = [_judged(series, index) for index in range(len(series))]
    known = [index for index, (sample, _) in enumerate(judged) if sample.counted is not None]
    first, newest = (known[0], known[-1]) if known else (0, -1)
    slots = _recent(series, query.SLOTS, newest) if known else []
    load = ObservedLoad(
        samples=tuple(sample for sample, _ in judged[first : newest + 1]),
        slots_per_pod=slots[-1] if slots else own.slots_per_pod,
    )
    if not target.ready:
        return replace(load, unknown=NO_WORKER)
    since = [fault for _, fault in judged[newest + 1 :] if fault is not None]
    if since:
        return replace(load, unknown=f"Prometheus tells {since[-1]}; {_RIGHT_ONE}")
    if series.end < now - STALE_S:
        return replace(load, unknown=_NOT_ASKED)
    if newest < len(series) - _ABSENT:
        return replace(load, unknown=_absent(target, now))
    if max(_recent(series, query.RATED, newest)) < len(target.ready_before(now - _SETTLED_S)):
        return replace(load, unknown=f"Prometheus has no figures of some of the pool's workers; {_SCRAPES}")
    contradiction = _contradiction(load, target, own, now)
    # Where the two differ, the workers are nearer to the truth.
    return load if contradiction is None else replace(own, unknown=contradiction)


def _judged(series: LoadSeries, index: int) -> tuple[LoadSample, str | None]:
    """One sample, and why it has no figures where those that are there can't be true."""
    at, row = float(series.first + index * STEP_S), series.at(index)
    fault = no_number(row)
    if fault is not None:
        return LoadSample(at), fault
    bare = LoadSample(at, ready=round(row.get(query.READY, 0)))
    if not row.keys() >= {*_RATES, query.SHARE, query.SLOTS, query.PODS, query.RATED} or row[query.PODS] < 1:
        return bare, None
    counted = Counted(MEAN_S, *(row[figure] * MEAN_S for figure in _RATES))
    # Workers that have gone within the minute are in its sums, and not among the workers at its end.
    pods = _recent(series, query.PODS, index)
    slots = max(pods) * max(_recent(series, query.SLOTS, index))
    fault = implausible(counted, row[query.SHARE] / max(pods), slots)
    if fault is None and row[query.SLOTS] < 1:
        fault = "workers that can run no request"
    if fault is not None:
        return bare, fault
    minute = pods[-_STEPS:]
    share = row[query.SHARE] / (sum(minute) / len(minute))
    return LoadSample(at, counted, min(share, 1.0), bare.ready), None


def _recent(series: LoadSeries, figure: str, index: int) -> list[float]:
    """A figure's values within the minute up to an instant, and at its beginning."""
    return [value for value in series.figures[figure][max(0, index - _STEPS) : index + 1] if is_number(value)]


def _absent(target: LoadTarget, now: float) -> str:
    if not target.ready_before(now - _SETTLED_S):
        return (
            "Prometheus has no figures of the pool's workers yet, which have just become ready; wait a minute"
        )
    what = f"Prometheus has no figures of the pool's workers that are newer than {STALE_S} s"
    return f"{what}; {_SCRAPES}, and that clocks agree"


def _contradiction(load: ObservedLoad, target: LoadTarget, own: ObservedLoad, now: float) -> str | None:
    """Why the workers themselves give the lie to the newest figures, or can't be heard about them."""
    newest = load.samples[-1]
    near = [item for item in own.samples if item.counted is not None and abs(item.at - newest.at) <= _NEAR_S]
    if not near:
        patient = not own.samples or now - own.samples[0].at <= _PATIENCE_S
        if patient or own.unknown is None:
            return None
        return f"nothing confirms Prometheus' figures: {own.unknown}"
    settled = len(target.ready_before(now - _SETTLED_S)) == target.ready
    theirs = _compared(newest, load.slots_per_pod)
    ours = [_compared(item, own.slots_per_pod or load.slots_per_pod) for item in near]
    for what, floor in _FLOORS.items():
        values = [each[what] for each in ours]
        if theirs[what] > max(_FACTOR * max(values), floor):
            return _off("more", what)
        # Of workers that have just come, the operator knows sooner.
        if settled and min(values) > max(_FACTOR * theirs[what], floor):
            return _off("less", what)
    return None


def _off(how: str, what: str) -> str:
    return (
        f"Prometheus' figure for {what} is over {_FACTOR:g} times {how} than the workers' own; {_RIGHT_ONE}"
    )


def _compared(sample: LoadSample, slots: float | None) -> Mapping[str, float]:
    counted = sample.counted
    if counted is None:
        return dict.fromkeys(_FLOORS, 0.0)
    return {
        "busy slots": counted.busy_s / counted.seconds,
        "requests per second": counted.arrivals / counted.seconds,
        "slots per worker": slots or 0.0,
    }
