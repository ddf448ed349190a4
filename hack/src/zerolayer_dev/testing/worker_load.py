"""What workers would count under a load that is known exactly."""

from dataclasses import dataclass

NAMES = {
    "zero_layer_requests_received_total": "arrivals",
    "zero_layer_busy_slot_seconds_total": "busy_s",
    "zero_layer_waiting_request_seconds_total": "queued_s",
    "zero_layer_requests_served_total": "finished",
    "zero_layer_served_slot_seconds_total": "service_s",
    "zero_layer_busy_share_seconds_total": "share_s",
}
"""The counters, and what they are called where their growth is observed."""


@dataclass(frozen=True, slots=True)
class SteadyWorker:
    """A worker under a load that stays as it is.

    Attributes:
        slots: Requests that it runs at once.
        arrivals: Requests per second that come; as many end.
        service_s: Seconds that each runs.
        queued: Requests that wait, on average.
        began: When it began, in seconds.
    """

    slots: int = 8
    arrivals: float = 0.5
    service_s: float = 4.0
    queued: float = 0.0
    began: float = 0.0

    @property
    def busy(self) -> float:
        """Busy slots, on average."""
        return min(float(self.slots), self.arrivals * self.service_s)

    def counted(self, now: float) -> dict[str, float]:
        """Its counters at an instant, by what they are called where their growth is observed."""
        seconds = now - self.began
        return {
            "arrivals": self.arrivals * seconds,
            "busy_s": self.busy * seconds,
            "queued_s": self.queued * seconds,
            "finished": self.busy / self.service_s * seconds,
            "service_s": self.busy * seconds,
            "share_s": self.busy / self.slots * seconds,
        }

    def metrics(self, now: float) -> str:
        """The same as the worker itself tells it, in Prometheus' text format."""
        values = self.counted(now)
        lines = [f"# TYPE {name} counter\n{name} {values[short]!r}" for name, short in NAMES.items()]
        gauges = {"zero_layer_slots": self.slots, "zero_layer_draining": 0}
        lines += [f"# TYPE {name} gauge\n{name} {value}" for name, value in gauges.items()]
        return "\n".join(lines) + "\n"
