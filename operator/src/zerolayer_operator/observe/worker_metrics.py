"""Reads what a worker says of its own load; no I/O."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from zerolayer_operator.api.queries import BUSY_SHARE_SECONDS, BUSY_SLOT_SECONDS, WAITING_REQUEST_SECONDS
from zerolayer_operator.observe.first_tokens import Buckets, grown
from zerolayer_operator.observe.load import Requests

ARRIVALS: Final = "zero_layer_requests_received_total"
FINISHED: Final = "zero_layer_requests_served_total"
SERVICE: Final = "zero_layer_served_slot_seconds_total"
SLOTS: Final = "zero_layer_slots"
DRAINING: Final = "zero_layer_draining"
RUNNING: Final = "zero_layer_requests_running"
WAITING: Final = "zero_layer_requests_waiting"
FIRST_TOKENS: Final = "zero_layer_time_to_first_token_seconds_bucket"

_LARGEST: Final = 1e15
_UNREADABLE: Final = "its metrics can't be read; check what answers there"
_NAMES: Final = frozenset(
    {
        ARRIVALS,
        BUSY_SLOT_SECONDS,
        WAITING_REQUEST_SECONDS,
        FINISHED,
        SERVICE,
        BUSY_SHARE_SECONDS,
        SLOTS,
    }
)
_READ: Final = _NAMES | {RUNNING, WAITING}


def lines(names: Iterable[str]) -> re.Pattern[str]:
    """Lines with the samples of these names."""
    return re.compile(rf"^(?:{'|'.join(sorted(names))})(?:[ {{].*)?$", re.MULTILINE)


_LINES: Final = lines(_READ)
_FIRST_TOKEN_LINES: Final = lines({FIRST_TOKENS})
_MOST_LINES: Final = 1000
"""Lines of one kind; a worker has some ten bounds for each of its routes."""

_LONGEST_LINE: Final = 1000
"""Characters of a line that says one figure; what a parser makes of a million takes it seconds."""


class WorkerMetricsError(Exception):
    """A worker's metrics don't say how loaded it is; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class WorkerCounters:
    """What one worker has counted since it began, and how much it can do at once.

    Attributes:
        arrivals: Requests that came.
        busy_s: Slot-seconds in which a request ran.
        queued_s: Request-seconds spent waiting for a slot.
        finished: Requests that left a slot.
        service_s: Slot-seconds that those took, together.
        share_s: Seconds that it was busy, each weighted with the share of its capacity in use.
        slots: Requests that it can run at once.
        requests: What it has to do now; ``None`` where it does not tell.
        first_tokens: First tokens by how long they took, on all routes; ``None`` where that was not asked.
    """

    arrivals: float
    busy_s: float
    queued_s: float
    finished: float
    service_s: float
    share_s: float
    slots: float
    requests: Requests | None = None
    first_tokens: Buckets | None = None

    def since(self, earlier: "WorkerCounters") -> "WorkerCounters":
        """What they grew by; all of it where the worker has started anew in the meantime."""
        tokens = _grown(self.first_tokens, earlier.first_tokens)
        growth = WorkerCounters(
            self.arrivals - earlier.arrivals,
            self.busy_s - earlier.busy_s,
            self.queued_s - earlier.queued_s,
            self.finished - earlier.finished,
            self.service_s - earlier.service_s,
            self.share_s - earlier.share_s,
            self.slots,
            self.requests,
            tokens,
        )
        shrunk = min(
            growth.arrivals,
            growth.busy_s,
            growth.queued_s,
            growth.finished,
            growth.service_s,
            growth.share_s,
            *(tokens or {}).values(),
        )
        return self if shrunk < 0 else growth


def _grown(now: Buckets | None, before: Buckets | None) -> Buckets | None:
    return None if now is None or before is None else grown(now, before)


def read_counters(text: str, *, first_tokens: bool = False) -> WorkerCounters:
    """The counters in a worker's metrics.

    Args:
        text: The metrics in Prometheus' text format.
        first_tokens: Whether the times to the first token are read too.

    Raises:
        WorkerMetricsError: They are not all there, are there twice, or are no sensible numbers.
    """
    found: dict[str, float] = {}
    for name, value, _ in samples(text, _LINES):
        if name in found:
            raise WorkerMetricsError(f"it gives {name} twice; check what answers on its operations port")
        if name == SLOTS and value < 1:
            raise WorkerMetricsError(f"it gives {value:.3g} for {name}; restart it")
        found[name] = value
    missing = min(_NAMES - found.keys(), default=None)
    if missing is not None:
        raise WorkerMetricsError(
            f"it does not give {missing}; its image is older than the operator: set a newer spec.worker.image"
        )
    return WorkerCounters(
        arrivals=found[ARRIVALS],
        busy_s=found[BUSY_SLOT_SECONDS],
        queued_s=found[WAITING_REQUEST_SECONDS],
        finished=found[FINISHED],
        service_s=found[SERVICE],
        share_s=found[BUSY_SHARE_SECONDS],
        slots=found[SLOTS],
        requests=Requests(found[RUNNING], found[WAITING]) if found.keys() >= {RUNNING, WAITING} else None,
        first_tokens=buckets(samples(text, _FIRST_TOKEN_LINES)) if first_tokens else None,
    )


def buckets(found: Iterable[tuple[str, float, Mapping[str, str]]]) -> Buckets:
    """A histogram on all routes together, from its samples; of a worker that never had a request, none.

    Raises:
        WorkerMetricsError: A sample has no sensible bound.
    """
    together: dict[float, float] = {}
    for _, value, labels in found:
        try:
            bound = float(labels["le"])
        except (KeyError, ValueError) as error:
            raise WorkerMetricsError(_UNREADABLE) from error
        if not bound > 0:
            raise WorkerMetricsError(_UNREADABLE)
        together[bound] = together.get(bound, 0.0) + value
    return together


def samples(text: str, wanted: re.Pattern[str]) -> Iterator[tuple[str, float, Mapping[str, str]]]:
    """Name, value and labels of the samples in such lines.

    Raises:
        WorkerMetricsError: There are far too many, or they are no sensible numbers.
    """
    # Only the lines that matter are parsed: the rest of a worker's metrics is a hundred times as much.
    lines = [found[0] for found in wanted.finditer(text)]
    if len(lines) > _MOST_LINES or any(len(line) > _LONGEST_LINE for line in lines):
        raise WorkerMetricsError(_UNREADABLE)
    for sample in _parsed("\n".join(lines)):
        if not 0 <= sample.value <= _LARGEST:
            raise WorkerMetricsError(f"it gives {sample.value:.3g} for {sample.name}; restart it")
        yield sample.name, float(sample.value), sample.labels


def _parsed(text: str) -> Iterator[Sample]:
    try:
        for family in text_string_to_metric_families(text):
            yield from family.samples
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        # The parser knows well-formed text only.
        raise WorkerMetricsError(_UNREADABLE) from error
