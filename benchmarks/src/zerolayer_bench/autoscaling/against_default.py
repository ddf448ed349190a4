"""The operator's own policy against what an autoscaler does by default: a fixed window of 300 s.

`python -m zerolayer_bench.autoscaling.against_default summary.csv` prints the table of such a file.
"""

import csv
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from zerolayer_bench.autoscaling.experiment import OURS, Row, window_name

DEFAULT = window_name(300)
_HEAD = ("trace", "cold start", "replica-hours", "late", "late with 300 s", "regrets", "regrets with 300 s")


class Cost(NamedTuple):
    """What one policy came to on a trace; the late share is of 1."""

    trace: str
    cold_start_s: int
    policy: str
    replica_hours: float
    late_share: float
    regrets: int


def of_rows(rows: Iterable[Row]) -> Iterator[Cost]:
    """Yields what each row came to."""
    for row in rows:
        found = row.outcome
        yield Cost(
            row.trace, row.cold_start_s, row.policy, found.replica_hours, found.late_share, found.regrets
        )


def of_file(path: Path) -> Iterator[Cost]:
    """Yields what each line of a `summary.csv` came to.

    Raises:
        OSError: it can't be read.
        KeyError: a column is missing.
        ValueError: a figure is none.
    """
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            yield Cost(
                line["trace"], int(line["cold_start_s"]), line["policy"], float(line["replica_hours"]),
                float(line["late_share"]), int(line["regrets"]),
            )  # fmt: skip


def table(costs: Iterable[Cost]) -> Iterator[str]:
    """Yields the lines of a Markdown table: a line for each trace and cold start, in the order given."""
    yield _line(_HEAD)
    yield _line("---" for _ in _HEAD)
    for (trace, cold_start_s), group in groupby(costs, key=lambda cost: (cost.trace, cost.cold_start_s)):
        by_name = {cost.policy: cost for cost in group}
        ours, fixed = by_name[OURS], by_name[DEFAULT]
        yield _line(
            (
                trace, f"{cold_start_s} s", f"{100 * (ours.replica_hours / fixed.replica_hours - 1):+.1f} %",
                f"{100 * ours.late_share:.2f} %", f"{100 * fixed.late_share:.2f} %",
                str(ours.regrets), str(fixed.regrets),
            )
        )  # fmt: skip


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(*table(of_file(Path(sys.argv[1]))), sep="\n")
