"""Every policy on every trace at every cold start."""

import itertools
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from zerolayer_bench.autoscaling.frontier import Point, distance, lower_hull
from zerolayer_bench.autoscaling.policies import (
    AdaptivePodAutoscaler,
    Clairvoyant,
    Concurrency,
    FixedWindow,
    KnativePodAutoscaler,
    Tuned,
)
from zerolayer_bench.autoscaling.simulation import FIRST_REPLICAS, Outcome, Policy, simulate
from zerolayer_bench.autoscaling.traces import Workload, offered_load, read

COLD_STARTS_S = (30, 90, 240)
WINDOWS_S = (0, 60, 120, 180, 300, 600, 1200, 1800, 3600)
TARGETS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
TARGET = 0.7
REFERENCE_WINDOW_S, REFERENCE_COLD_START_S = 300, 90
_HALVINGS = 14


@dataclass(frozen=True, slots=True)
class Row:
    """One policy's outcome.

    Attributes:
        below_window_pct: replica-hours saved against the fixed windows' frontier at the same late share.
        below_target_pct: the same against the frontier of windows and targets.
        outside: the late share lies outside of what fixed windows reach; the nearest one was taken.
    """

    trace: str
    cold_start_s: int
    policy: str
    outcome: Outcome
    below_window_pct: float
    below_target_pct: float
    outside: bool


def calibrate(workload: Workload) -> Workload:
    """Returns the workload on pods of such a speed that a fixed 300 s needs ten replicas on average."""
    low, high = 1e-3, 1e3
    for _ in range(_HALVINGS):
        slowed = workload.slowed(math.sqrt(low * high))
        outcome = simulate(
            slowed, offered_load(slowed), FixedWindow(REFERENCE_WINDOW_S), REFERENCE_COLD_START_S
        )
        if outcome.replica_hours / (slowed.duration_s / 3600) > FIRST_REPLICAS:
            high = math.sqrt(low * high)
        else:
            low = math.sqrt(low * high)
    return workload.slowed(math.sqrt(low * high))


def fixed_name(window_s: int, target: float = TARGET) -> str:
    """Returns how a fixed window is called in the tables."""
    return f"fixed-{window_s}s" + ("" if target == TARGET else f"-target-{target:.2f}")


def policies(workload: Workload, cold_start_s: int) -> dict[str, Policy]:
    """Returns fresh policies by name: the fixed windows, what the field uses, and the bound."""
    offered = offered_load(workload)
    fixed: dict[str, Policy] = {
        fixed_name(window, target): FixedWindow(window, target)
        for window, target in itertools.product(WINDOWS_S, TARGETS)
    }
    return fixed | {
        "knative-kpa": KnativePodAutoscaler(),
        "keda-defaults": Concurrency(),
        "aibrix-apa": AdaptivePodAutoscaler(),
        "ours": Tuned(cold_start_s),
        "clairvoyant": Clairvoyant(offered, cold_start_s),
    }


def compare(workload: Workload, cold_start_s: int) -> list[Row]:
    """Runs every policy on a calibrated workload and measures it against the frontiers."""
    offered = offered_load(workload)
    outcomes = {
        name: simulate(workload, offered, policy, cold_start_s)
        for name, policy in policies(workload, cold_start_s).items()
    }
    points = {name: Point(found.late_share, found.replica_hours) for name, found in outcomes.items()}
    by_window = lower_hull(points[fixed_name(window)] for window in WINDOWS_S)
    by_target = lower_hull(
        points[fixed_name(window, target)] for window, target in itertools.product(WINDOWS_S, TARGETS)
    )
    return [
        Row(
            workload.name,
            cold_start_s,
            name,
            outcome,
            distance(by_window, points[name]).below_pct,
            distance(by_target, points[name]).below_pct,
            distance(by_window, points[name]).outside,
        )
        for name, outcome in outcomes.items()
    ]


def run(traces: Path, workers: int, tell: Callable[[str], None]) -> Iterator[Row]:
    """Yields the rows of every trace in a folder, trace by trace.

    Raises:
        FileNotFoundError: there is no `*.csv.gz`.
        TraceError: a file is no trace.
    """
    files = sorted(traces.glob("*.csv.gz"))
    if not files:
        raise FileNotFoundError(f"{traces}: no *.csv.gz in it; give a folder of traces by TRACES=DIR")
    workloads = [read(file) for file in files]
    with ProcessPoolExecutor(workers) as executor:
        calibrated = list(executor.map(calibrate, workloads))
        tell(f"{len(files)} traces, pods sized")
        jobs = [(workload, cold_start) for workload in calibrated for cold_start in COLD_STARTS_S]
        for (workload, cold_start), rows in zip(
            jobs, executor.map(compare, *zip(*jobs, strict=True)), strict=True
        ):
            tell(f"{workload.name}, cold start {cold_start} s: {len(rows)} policies")
            yield from rows
