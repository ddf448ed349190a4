"""Every policy on every trace at every cold start."""

import itertools
import math
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from zerolayer_bench.autoscaling.frontier import Distance, Point, distance, lower_hull
from zerolayer_bench.autoscaling.policies import (
    SYNC_S,
    TARGET,
    AdaptivePodAutoscaler,
    Clairvoyant,
    Concurrency,
    FixedWindow,
    KnativePodAutoscaler,
    Tuned,
)
from zerolayer_bench.autoscaling.simulation import FIRST_REPLICAS, Outcome, Policy, simulate
from zerolayer_bench.autoscaling.traces import Floats, Workload, offered_load

COLD_STARTS_S = (30, 90, 240)
WINDOWS_S = (0, 60, 120, 180, 300, 600, 1200, 1800, 3600)
TARGETS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
REFERENCE_WINDOW_S, REFERENCE_COLD_START_S = 300, 90
OURS, CLAIRVOYANT = "ours", "clairvoyant"
_HALVINGS = 14
_NEAR_ENOUGH = 0.03

Tell = Callable[[str], None]
Stage = tuple[Workload, Floats]


@dataclass(frozen=True, slots=True)
class Row:
    """One policy's outcome.

    Attributes:
        duration_s: of the trace.
        window: distance from the frontier of fixed windows.
        target: distance from the frontier of windows and targets.
    """

    trace: str
    duration_s: int
    cold_start_s: int
    policy: str
    outcome: Outcome
    window: Distance
    target: Distance

    @property
    def point(self) -> Point:
        """Where the policy lies in a picture."""
        return Point(self.outcome.late_share, self.outcome.replica_hours)


def reference(workload: Workload) -> float:
    """Returns the mean replicas that a fixed window of 300 s needs."""
    policy = FixedWindow(REFERENCE_WINDOW_S)
    outcome = simulate(workload, offered_load(workload), policy, REFERENCE_COLD_START_S)
    return outcome.replica_hours / (workload.duration_s // SYNC_S * SYNC_S / 3600)


def sizing(workload: Workload) -> float:
    """Returns how many times as long pods must take for a fixed 300 s to need ten replicas on average."""
    low, high = 1e-3, 1e3
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reference(workload.slowed(middle)) > FIRST_REPLICAS else (middle, high)
    return math.sqrt(low * high)


def window_name(window_s: int, target: float = TARGET) -> str:
    """Returns how a fixed window is called in the tables."""
    return f"fixed-{window_s}s" if target == TARGET else f"target-{target:.2f}-{window_s}s"


def ours_name(target: float = TARGET) -> str:
    """Returns how the operator's own policy is called in the tables."""
    return OURS if target == TARGET else f"target-{target:.2f}-{OURS}"


def policies(offered: Floats, cold_start_s: int) -> dict[str, Policy]:
    """Returns fresh policies by name: the fixed windows, what the field uses, ours, and the bound."""
    fixed = {
        window_name(window, target): FixedWindow(window, target)
        for window, target in itertools.product(WINDOWS_S, TARGETS)
    }
    ours = {ours_name(target): Tuned(cold_start_s, target) for target in TARGETS}
    return {
        **fixed,
        "knative-kpa": KnativePodAutoscaler(),
        "keda-defaults": Concurrency(),
        "aibrix-apa": AdaptivePodAutoscaler(),
        **ours,
        CLAIRVOYANT: Clairvoyant(offered, cold_start_s),
    }


def compare(workload: Workload, cold_start_s: int, outcomes: Mapping[str, Outcome]) -> list[Row]:
    """Measures policies against the frontiers that the fixed windows among them draw."""
    points = {name: Point(found.late_share, found.replica_hours) for name, found in outcomes.items()}
    by_window = lower_hull(points[window_name(window)] for window in WINDOWS_S)
    by_target = lower_hull(
        points[window_name(window, target)] for window, target in itertools.product(WINDOWS_S, TARGETS)
    )
    return [
        Row(
            workload.name,
            workload.duration_s,
            cold_start_s,
            name,
            outcome,
            distance(by_window, points[name]),
            distance(by_target, points[name]),
        )
        for name, outcome in outcomes.items()
    ]


def run(workloads: Sequence[Workload], workers: int, tell: Tell) -> Iterator[list[Row]]:
    """Yields the rows of each trace, trace by trace, and tells what is done.

    Args:
        workloads: the traces, as they were read.
        workers: processes at once.
        tell: takes a line for people.
    """
    with ProcessPoolExecutor(workers) as executor:
        sized = [
            workload.slowed(factor)
            for workload, factor in zip(workloads, executor.map(sizing, workloads), strict=True)
        ]
        for workload, mean in zip(sized, executor.map(reference, sized), strict=True):
            tell(_sized_line(workload, mean))
    # Forked processes have the traces without a copy for each of the policies.
    _stages[:] = [(workload, offered_load(workload)) for workload in sized]
    names = list(policies(_stages[0][1], REFERENCE_COLD_START_S)) if _stages else []
    jobs = list(itertools.product(range(len(_stages)), COLD_STARTS_S, names))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as executor:
        outcomes = executor.map(_play, *zip(*jobs, strict=True)) if jobs else iter(())
        for workload in sized:
            rows: list[Row] = []
            for cold_start in COLD_STARTS_S:
                found = dict(zip(names, outcomes, strict=False))
                rows.extend(compare(workload, cold_start, found))
                tell(f"{workload.name}, cold start {cold_start} s: {len(names)} policies")
            yield rows


_stages: list[Stage] = []


def _play(stage: int, cold_start_s: int, name: str) -> Outcome:
    workload, offered = _stages[stage]
    return simulate(workload, offered, policies(offered, cold_start_s)[name], cold_start_s)


def _sized_line(workload: Workload, mean: float) -> str:
    line = f"{workload.name}: {len(workload.arrivals)} requests in {workload.duration_s / 3600:.1f} h"
    if workload.duration_s < 2 * REFERENCE_WINDOW_S:
        return f"{line}, too short to judge by"
    if abs(mean / FIRST_REPLICAS - 1) > _NEAR_ENOUGH:
        return f"{line}, no size of pods makes a fixed 300 s need ten replicas, but {mean:.1f}"
    return line
