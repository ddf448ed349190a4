"""Recorded arrivals, as requests that each keep a slot of a batch busy for a while."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLOTS_PER_POD = 8  # batch limit
PREFILL_TOKENS_PER_S = 4000.0
DECODE_TOKENS_PER_S = 30.0
_BIN_S = 5.0
_SEED = 20240611
# Traces that only count requests get lengths of this shape: medians and spreads in the range of the
# published conversation traces.
_INPUT_MEDIAN, _INPUT_SIGMA = 600.0, 1.0
_OUTPUT_MEDIAN, _OUTPUT_SIGMA = 150.0, 0.8


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in the order they arrive.

    Attributes:
        name: of the trace.
        arrivals: seconds, ascending; shape `[requests]`.
        services: seconds that a request keeps one slot busy; shape `[requests]`.
        duration_s: length of the trace, in whole minutes.
    """

    name: str
    arrivals: Floats
    services: Floats
    duration_s: int

    def slowed(self, factor: float) -> "Workload":
        """Returns the same requests on pods that take `factor` times as long."""
        return Workload(self.name, self.arrivals, self.services * factor, self.duration_s)


class TraceError(ValueError):
    """A file is no trace; the message names it and the line."""


def read(path: Path) -> Workload:
    """Reads a trace: `arrival_s,input_tokens,output_tokens`, or `requests_per_5s`, with that header.

    Raises:
        TraceError: the header is another one, a value is no number, or there is no request.
        OSError: the file can't be read.
    """
    name = path.name.removesuffix(".csv.gz")
    with gzip.open(path, "rt") as file:
        header = file.readline().strip()
        try:
            rows = np.loadtxt(file, delimiter=",", ndmin=2)
        except ValueError as error:
            raise TraceError(f"{path}: {error}") from error
    generator = np.random.default_rng(_SEED)
    if header == "arrival_s,input_tokens,output_tokens" and rows.shape[1:] == (3,):
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        arrivals, inputs, outputs = rows[:, 0] - rows[0, 0], rows[:, 1], rows[:, 2]
        duration = arrivals[-1]
    elif header == "requests_per_5s" and rows.shape[1:] == (1,):
        arrivals = _spread(rows[:, 0], generator)
        inputs = generator.lognormal(np.log(_INPUT_MEDIAN), _INPUT_SIGMA, len(arrivals))
        outputs = generator.lognormal(np.log(_OUTPUT_MEDIAN), _OUTPUT_SIGMA, len(arrivals))
        duration = len(rows) * _BIN_S
    else:
        raise TraceError(f"{path}: line 1 is {header!r}, not a header of a known format")
    if not len(arrivals):
        raise TraceError(f"{path}: no request in it")
    services = inputs / PREFILL_TOKENS_PER_S + outputs / DECODE_TOKENS_PER_S
    return Workload(name, arrivals, services, int(np.ceil(duration / 60)) * 60)


def _spread(counts: Floats, generator: np.random.Generator) -> Floats:
    """Returns arrival times that lie anywhere within their bins."""
    starts = np.repeat(np.arange(len(counts)) * _BIN_S, counts.astype(np.int64))
    return np.sort(starts + generator.random(len(starts)) * _BIN_S)


def offered_load(workload: Workload) -> Floats:
    """Returns how many slots would be busy at each full second if nobody ever waited."""
    seconds = workload.duration_s
    change = np.zeros(seconds + 1)
    begins = np.minimum(np.ceil(workload.arrivals), seconds).astype(np.int64)
    ends = np.minimum(np.ceil(workload.arrivals + workload.services), seconds).astype(np.int64)
    np.add.at(change, begins, 1.0)
    np.add.at(change, ends, -1.0)
    return np.cumsum(change)[:seconds]
