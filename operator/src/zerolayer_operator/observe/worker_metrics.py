"""Reads what a worker says of its own load; no I/O."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from zerolayer_operator.api.queries import BUSY_SHARE_SECONDS, BUSY_SLOT_SECONDS, WAITING_REQUEST_SECONDS
from zerolayer_operator.observe.load import Requests

ARRIVALS: Final = "zero_layer_requests_received_total"
FINISHED: Final = "zero_layer_requests_served_total"
SERVICE: Final = "zero_layer_served_slot_seconds_total"
SLOTS: Final = "zero_layer_slots"
DRAINING: Final = "zero_layer_draining"
RUNNING: Final = "zero_layer_requests_running"
WAITING: Final = "zero_layer_requests_waiting"

_LARGEST: Final = 1e15
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
_LINE: Final = re.compile(rf"^(?:{'|'.join(sorted(_READ))})(?:[ {{].*)?$", re.MULTILINE)
_LONGEST_LINE: Final = 1000
"""Characters of a line that says one figure; what a parser makes of a million takes it seconds."""


_UNREADABLE: Final = "its metrics can't be read; check what answers there"


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
    """

    arrivals: float
    busy_s: float
    queued_s: float
    finished: float
    service_s: float
    share_s: float
    slots: float
    requests: Requests | None = None

    def since(self, earlier: "WorkerCounters") -> "WorkerCounters":
        """What they grew by; all of it where the worker has started anew in the meantime."""
        grown = WorkerCounters(
            self.arrivals - earlier.arrivals,
            self.busy_s - earlier.busy_s,
            self.queued_s - earlier.queued_s,
            self.finished - earlier.finished,
            self.service_s - earlier.service_s,
            self.share_s - earlier.share_s,
            self.slots,
            self.requests,
        )
        shrunk = min(
            grown.arrivals, grown.busy_s, grown.queued_s, grown.finished, grown.service_s, grown.share_s
        )
        return self if shrunk < 0 else grown


def read_counters(text: str) -> WorkerCounters:
    """The counters in a worker's metrics, in Prometheus' text format.

    Raises:
        WorkerMetricsError: They are not all there, are there twice, or are no sensible numbers.
    """
    found: dict[str, float] = {}
    for name, value in _samples(text):
        if name in found:
            raise WorkerMetricsError(f"it gives {name} twice; check what answers on its operations port")
        if not (1 if name == SLOTS else 0) <= value <= _LARGEST:
            raise WorkerMetricsError(f"it gives {value:.3g} for {name}; restart it")
        found[name] = float(value)
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
    )


def _samples(text: str) -> Iterator[tuple[str, float]]:
    # Only the lines that matter are parsed: the rest of a worker's metrics is a hundred times as much.
    lines = [found[0] for found in _LINE.finditer(text)]
    if any(len(line) > _LONGEST_LINE for line in lines):
        raise WorkerMetricsError(_UNREADABLE)
    try:
        for family in text_string_to_metric_families("\n".join(lines)):
            for sample in family.samples:
                yield sample.name, sample.value
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        # The parser knows well-formed text only.
        raise WorkerMetricsError(_UNREADABLE) from error
