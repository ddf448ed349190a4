"""What an operator costs within some time: processor, memory, calls of the API server, delays."""

import math
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from zerolayer_dev.testing.audit import AuditLog, Call
from zerolayer_dev.testing.operator_process import OperatorProcess

Sample = tuple[str, tuple[tuple[str, str], ...]]

PROBES_S = 0.1
"""Seconds between two probes, each of which is answered by the loop that does the work."""


@dataclass(frozen=True)
class Meter:
    """The operator's figures at an instant, to be subtracted from later ones.

    Attributes:
        at: When they were read, in seconds of a monotonic clock.
        cpu_s: Processor time that the process has used.
        samples: Its metrics.
        mark: The end of the audit log.
    """

    at: float
    cpu_s: float
    samples: dict[Sample, float]
    mark: int

    @classmethod
    def read(cls, operator: OperatorProcess, audit: AuditLog) -> Self:
        """Reads it now."""
        return cls(time.monotonic(), _cpu_seconds(operator.process.pid), samples(operator), audit.mark())

    def growth(self, later: "Meter", name: str, **labels: str) -> float:
        """How much a sample has grown until `later`; one that was not there is 0."""
        key = (name, tuple(sorted(labels.items())))
        return later.samples.get(key, 0.0) - self.samples.get(key, 0.0)

    def quantile(self, later: "Meter", histogram: str, share: float) -> float:
        """A quantile of what a histogram has taken in until `later`, as Prometheus estimates it."""
        bounds = sorted(
            (float(dict(labels)["le"]), later.samples[name, labels] - self.samples.get((name, labels), 0.0))
            for name, labels in later.samples
            if name == f"{histogram}_bucket"
        )
        return _quantile(bounds, share)


def samples(operator: OperatorProcess) -> dict[Sample, float]:
    """The operator's metrics by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(operator.metrics())
        for sample in family.samples
    }


def probe_for(operator: OperatorProcess, seconds: float) -> list[float]:
    """Asks for the operator's health again and again; returns the seconds that each took, sorted."""
    taken: list[float] = []
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        operator.probe("/healthz")
        taken.append(time.monotonic() - began)
        time.sleep(max(0.0, PROBES_S - taken[-1]))
    return sorted(taken)


def calls(audit: AuditLog, user: str, since: int) -> Counter[str]:
    """The calls of a user since a mark, by verb and kind."""
    return Counter(_named(call) for call in audit.calls(user=user, since=since))


def _named(call: Call) -> str:
    return f"{call.permission.verb} {call.permission.resource}"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _quantile(bounds: list[tuple[float, float]], share: float) -> float:
    rank = share * (bounds[-1][1] if bounds else 0.0)
    low, below = 0.0, 0.0
    for bound, count in bounds:
        if count >= rank and count > below:
            return low if math.isinf(bound) else low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    return math.nan
