"""Recorded arrivals, as requests that each keep a slot of a batch busy for a while."""

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLOTS_PER_POD = 8  # batch limit
PREFILL_TOKENS_PER_S = 4000.0
DECODE_TOKENS_PER_S = 30.0
_BIN_S = 5.0
_LONGEST_S = 92 * 86400
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
        TraceError: the file is not compressed, its header is another one, a value is no finite number,
            negative, or no count where it has to be one, there is no request, or nothing to do for any, or it
            is longer than a quarter of a year.
        OSError: the file can't be read.
    """
    header, rows = _rows(path)
    if not len(rows) or (header == _COUNTS and not rows.any()):
        raise TraceError(f"{path}: no request in it")
    arrivals, inputs, outputs, duration = _counted(path, rows) if header == _COUNTS else _listed(rows)
    services = inputs / PREFILL_TOKENS_PER_S + outputs / DECODE_TOKENS_PER_S
    if not services.any():
        raise TraceError(f"{path}: no request has tokens")
    if duration > _LONGEST_S:
        days = math.ceil(duration / 86400)
        raise TraceError(f"{path}: {days} days are more than {_LONGEST_S // 86400}; arrival_s is in seconds")
    return Workload(path.name.removesuffix(".csv.gz"), arrivals, services, 60 * math.ceil(duration / 60))


def _counted(path: Path, rows: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Returns arrivals, input and output tokens, and the duration of a trace that counts requests."""
    if (rows % 1).any():
        raise TraceError(f"{path}: requests_per_5s is a whole number")
    generator = np.random.default_rng(_SEED)
    arrivals = _spread(rows[:, 0], generator)
    inputs = generator.lognormal(np.log(_INPUT_MEDIAN), _INPUT_SIGMA, len(arrivals))
    outputs = generator.lognormal(np.log(_OUTPUT_MEDIAN), _OUTPUT_SIGMA, len(arrivals))
    return arrivals, inputs, outputs, len(rows) * _BIN_S


def _listed(rows: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Returns the same of a trace that lists requests; it ends with the minute of the last one."""
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    arrivals = rows[:, 0] - rows[0, 0]
    return arrivals, rows[:, 1], rows[:, 2], 60 * (float(arrivals[-1]) // 60 + 1)


def _rows(path: Path) -> tuple[str, Floats]:
    """Returns the header and a table with its columns."""
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig") as file:
            header, *lines = file.read().splitlines() or [""]
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error
    header = header.replace(" ", "")
    if header not in (_COUNTS, _REQUESTS):
        raise TraceError(f"{path}: line 1 is {header!r}, neither {_COUNTS!r} nor {_REQUESTS!r}")
    return header, _table(path, lines, header.count(",") + 1)


def _table(path: Path, lines: list[str], columns: int) -> Floats:
    """Returns the numbers of all lines but the first."""
    lines = [line for line in lines if line.strip()]
    if not lines:
        return np.zeros((0, columns))
    try:
        rows = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise TraceError(f"{path}: {error}; each line needs {columns} numbers") from error
    if rows.shape[1] != columns:
        raise TraceError(f"{path}: each line needs {columns} numbers, not {rows.shape[1]}")
    if not np.isfinite(rows).all() or (rows < 0).any():
        raise TraceError(f"{path}: a value is negative or not finite")
    return rows


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
