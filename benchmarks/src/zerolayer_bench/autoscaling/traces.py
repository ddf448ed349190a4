"""Recorded arrivals, as requests that each keep a slot of a batch busy for a while."""

import gzip
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLOTS_PER_POD = 8  # batch limit
PREFILL_TOKENS_PER_S = 4000.0
DECODE_TOKENS_PER_S = 30.0
_BIN_S = 5.0
_REQUESTS, _COUNTS = "arrival_s,input_tokens,output_tokens", "requests_per_5s"
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
        TraceError: the file is not compressed, its header is another one, a value is no finite number or
            negative, or there is no request.
        OSError: the file can't be read.
    """
    header, rows = _rows(path)
    if header == _COUNTS:
        generator = np.random.default_rng(_SEED)
        arrivals = _spread(rows[:, 0], generator)
        inputs = generator.lognormal(np.log(_INPUT_MEDIAN), _INPUT_SIGMA, len(arrivals))
        outputs = generator.lognormal(np.log(_OUTPUT_MEDIAN), _OUTPUT_SIGMA, len(arrivals))
        duration = len(rows) * _BIN_S
    else:
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        arrivals, inputs, outputs = rows[:, 0] - rows[:1, 0], rows[:, 1], rows[:, 2]
        duration = float(arrivals.max(initial=0.0))
    if not len(arrivals):
        raise TraceError(f"{path}: no request in it")
    services = inputs / PREFILL_TOKENS_PER_S + outputs / DECODE_TOKENS_PER_S
    minutes = max(1, math.ceil(duration / 60))
    return Workload(path.name.removesuffix(".csv.gz"), arrivals, services, minutes * 60)


def _rows(path: Path) -> tuple[str, Floats]:
    """Returns the header and a table with its columns."""
    try:
        with gzip.open(path, "rt") as file:
            header = file.readline().strip()
            lines = file.read().splitlines()
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error
    if header not in (_COUNTS, _REQUESTS):
        raise TraceError(f"{path}: line 1 is {header!r}, neither {_COUNTS!r} nor {_REQUESTS!r}")
    columns = header.count(",") + 1
    try:
        rows = np.array([[float(cell) for cell in line.split(",")] for line in lines if line])
    except ValueError as error:
        raise TraceError(f"{path}: {error}; each line needs {columns} numbers") from error
    rows = rows.reshape(-1, columns) if not len(rows) else rows
    if rows.shape[1] != columns:
        raise TraceError(f"{path}: each line needs {columns} numbers, not {rows.shape[1]}")
    if not np.isfinite(rows).all() or (rows < 0).any():
        raise TraceError(f"{path}: a value is negative or not finite")
    return header, rows


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
