"""What a pool's workers counted from scrape to scrape, kept for an hour at most; no I/O.

A scrape of all workers is a tick. Its growth is the sum over the workers that were seen before, each since it
was last seen; a worker's first scrape is only where its counting starts from.
"""

import math
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

from zerolayer_operator.observe.first_tokens import Buckets, Waits, together, waits
from zerolayer_operator.observe.load import (
    MEAN_S,
    SPAN_S,
    STALE_S,
    STEP_S,
    Counted,
    LoadSample,
    ObservedLoad,
    Requests,
)
from zerolayer_operator.observe.load_source import NO_WORKER, LoadTarget, Worker
from zerolayer_operator.observe.plausible import implausible
from zerolayer_operator.observe.worker_metrics import WorkerCounters, WorkerMetricsError

Answer = WorkerCounters | WorkerMetricsError

_SHORTEST_MEAN_S: Final = 40
"""Fewer seconds of ticks are no minute; some of four may have come early."""

_TOO_EARLY: Final = (
    "the operator has asked the pool's workers for their load for less than a minute; wait for its first "
    "figures"
)
_ROWS: Final = (SPAN_S + MEAN_S) // STEP_S + 1


class _Tick(NamedTuple):
    """One scrape of all workers; the figures are sums over those that have growth, NaN where not known.

    Attributes:
        at: When it was, in seconds since 1970.
        seconds: Time since the tick before.
        ready: Workers that are ready.
        worker_s: Time that the growth is about.
        slot_s: The same times each worker's slots.
        first_tokens: First tokens by how long they took; ``None`` where that is not known.
    """

    at: float
    seconds: float
    ready: float
    worker_s: float = math.nan
    slot_s: float = math.nan
    arrivals: float = math.nan
    busy_s: float = math.nan
    queued_s: float = math.nan
    finished: float = math.nan
    service_s: float = math.nan
    share_s: float = math.nan
    first_tokens: Buckets | None = None

    @property
    def known(self) -> bool:
        """Whether it has figures."""
        return not math.isnan(self.worker_s)


_UNKNOWN: Final = (math.nan,) * len(fields(Counted))
_WIDTH: Final = 3 + len(_UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    counters: WorkerCounters


@dataclass(slots=True)
class _Growth:
    """Growth of some workers together."""

    worker_s: float = 0.0
    slot_s: float = 0.0
    parts: list[WorkerCounters] = field(default_factory=list[WorkerCounters])

    def add(self, grown: WorkerCounters, seconds: float) -> None:
        self.worker_s += seconds
        self.slot_s += seconds * grown.slots
        self.parts.append(grown)

    def within(self, tick: _Tick) -> _Tick:
        return tick._replace(
            worker_s=self.worker_s,
            slot_s=self.slot_s,
            arrivals=sum(item.arrivals for item in self.parts),
            busy_s=sum(item.busy_s for item in self.parts),
            queued_s=sum(item.queued_s for item in self.parts),
            finished=sum(item.finished for item in self.parts),
            service_s=sum(item.service_s for item in self.parts),
            share_s=sum(item.share_s for item in self.parts),
            first_tokens=_together(item.first_tokens for item in self.parts),
        )


class LoadLog:
    """One pool's last ticks, and a sample for each tick of the last hour.

    The samples lie in one array: as objects, those of some hundred pools would take a good part of the
    operator's memory.
    """

    def __init__(self) -> None:
        self._ticks: deque[_Tick] = deque()
        self._rows = array("d")
        self._seen: dict[str, _Seen] = {}
        self._fault: str | None = None
        self._implausible: str | None = None

    def add(self, at: float, target: LoadTarget, answers: Mapping[str, Answer]) -> None:
        """Takes in what the target's workers answered at an instant, by their addresses."""
        before = self._ticks[-1].at if self._ticks else -math.inf
        if at <= before:
            # The clock was set back: no time since then can be told.
            before, self._rows, self._seen = -math.inf, array("d"), {}
            self._ticks.clear()
        growth = self._take(at, target.workers, answers)
        self._fault = self._missing(at, target, answers)
        tick = _Tick(at, at - before, target.ready)
        if growth.parts and self._fault is None:
            tick = growth.within(tick)
        self._ticks.append(tick)
        while self._ticks[0].at <= at - 2 * MEAN_S:
            self._ticks.popleft()
        sample, self._implausible = _judged(self._ticks)
        self._rows.extend(_row(sample))
        del self._rows[: -_ROWS * _WIDTH]

    def load(self, now: float, target: LoadTarget, span_s: int) -> ObservedLoad:
        """The load of the target over the last `span_s` seconds, as far as the ticks tell."""
        samples = tuple(self._samples(now - span_s))
        slots = [item.counters.slots for item in self._seen.values()]
        unknown = self._unknown(now, target, samples[-1] if samples else None)
        return ObservedLoad(
            samples=samples,
            slots_per_pod=sum(slots) / len(slots) if slots else None,
            unknown=unknown,
            pending=unknown == _TOO_EARLY,
        )

    def requests(self, now: float) -> dict[str, Requests] | None:
        """What each worker had to do when it last told its load, by name; without what is too old by now.

        ``None`` before there was any tick.
        """
        if not self._rows:
            return None
        return {
            name: seen.counters.requests
            for name, seen in self._seen.items()
            if seen.counters.requests is not None and now - seen.at <= STALE_S
        }

    def waits(self, now: float, target: LoadTarget) -> Waits | None:
        """How long requests waited for their first token during the last minute; ``None`` if not known."""
        newest = _sample(self._rows[-_WIDTH:]) if self._rows and target.first_tokens else None
        if newest is None or newest.counted is None or self._unknown(now, target, newest) is not None:
            return None
        buckets = _together(tick.first_tokens for tick in _minute(self._ticks))
        return None if buckets is None else waits(buckets, newest.counted)

    def _samples(self, since: float) -> Iterator[LoadSample]:
        rows = self._rows
        for start in range(0, len(rows), _WIDTH):
            if rows[start] >= since:
                yield _sample(rows[start : start + _WIDTH])

    def _take(self, at: float, workers: Sequence[Worker], answers: Mapping[str, Answer]) -> _Growth:
        growth = _Growth()
        seen: dict[str, _Seen] = {}
        for worker in workers:
            answer, last = answers.get(worker.ip), self._seen.get(worker.name)
            if isinstance(answer, WorkerCounters):
                seen[worker.name] = _Seen(at, answer)
                if last is not None and at - last.at <= STALE_S:
                    growth.add(answer.since(last.counters), at - last.at)
            elif last is not None:
                seen[worker.name] = last
        self._seen = seen
        return growth

    def _missing(self, at: float, target: LoadTarget, answers: Mapping[str, Answer]) -> str | None:
        """Which of the workers that have been ready for a while says nothing, and why."""
        for worker in target.ready_before(at - STALE_S):
            last = self._seen.get(worker.name)
            if last is None or last.at < at - STALE_S:
                return f"worker {worker.name} does not tell its load: {answers.get(worker.ip)}"
        return None

    def _unknown(self, now: float, target: LoadTarget, newest: LoadSample | None) -> str | None:
        if not target.ready:
            return NO_WORKER
        if not self._rows:
            return _TOO_EARLY
        if newest is None or newest.at < now - STALE_S:
            return (
                f"the operator has not asked the pool's workers for their load within {STALE_S} s; wait a "
                "minute, or look at its log"
            )
        if newest.counted is None:
            return self._fault or self._implausible or _TOO_EARLY
        return None


def _together(parts: Iterable[Buckets | None]) -> Buckets | None:
    """The histogram of all parts; ``None`` where one of them isn't known."""
    known: list[Buckets] = []
    for part in parts:
        if part is None:
            return None
        known.append(part)
    return together(known)


def _row(sample: LoadSample) -> Iterator[float]:
    """A sample as numbers; NaN stands for what is not known."""
    counted, share = sample.counted, sample.busy_share
    yield from (sample.at, sample.ready, math.nan if share is None else share)
    yield from _UNKNOWN if counted is None else (getattr(counted, item.name) for item in fields(Counted))


def _sample(row: Sequence[float]) -> LoadSample:
    at, ready, share, *counted = row
    if math.isnan(counted[0]):
        return LoadSample(at, ready=int(ready))
    return LoadSample(at, Counted(*counted), share, int(ready))


def _judged(ticks: Sequence[_Tick]) -> tuple[LoadSample, str | None]:
    """The minute up to the last tick, and why it has no figures where those can't be true."""
    newest = ticks[-1]
    bare = LoadSample(newest.at, ready=int(newest.ready))
    minute = list(_minute(ticks))
    if sum(tick.seconds for tick in minute) < _SHORTEST_MEAN_S or not all(tick.known for tick in minute):
        return bare, None
    counted = Counted(
        seconds=sum(tick.seconds for tick in minute),
        arrivals=sum(tick.arrivals for tick in minute),
        busy_s=sum(tick.busy_s for tick in minute),
        queued_s=sum(tick.queued_s for tick in minute),
        finished=sum(tick.finished for tick in minute),
        service_s=sum(tick.service_s for tick in minute),
    )
    share = sum(tick.share_s for tick in minute) / sum(tick.worker_s for tick in minute)
    slots = sum(tick.slot_s for tick in minute) / counted.seconds
    fault = implausible(counted, share, slots)
    if fault is not None:
        return bare, f"the workers tell {fault}; restart them"
    return LoadSample(bare.at, counted, min(share, 1.0), bare.ready), None


def _minute(ticks: Sequence[_Tick]) -> Iterator[_Tick]:
    """The ticks that lie, at least with their greater part, in the minute up to the last of them."""
    begin = ticks[-1].at - MEAN_S
    for tick in reversed(ticks):
        if tick.at - tick.seconds / 2 <= begin:
            return
        yield tick
