"""`python -m zerolayer_bench.autoscaling.search --traces DIR`: how the operator's parameters were chosen.

Traces of several days are cut: what is searched on, and what is only looked at in the end. Shorter ones are
searched on whole. What is sought needs few replica-hours at the same late share, on average over the long
traces, and may neither be much above the frontier nor much more often overloaded than a fixed window of 300 s
on any.
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cma
import numpy as np

from zerolayer_bench.autoscaling.experiment import WINDOWS_S, sizing
from zerolayer_bench.autoscaling.frontier import Point, distance, lower_hull
from zerolayer_bench.autoscaling.policies import FixedWindow, Tuned
from zerolayer_bench.autoscaling.simulation import simulate
from zerolayer_bench.autoscaling.traces import Workload, offered_load, read
from zerolayer_operator.decide.window import CHOSEN, Parameters, Staffing

DAY_S = 86400
TRAINING_DAYS = 4
SHORT_COLD_STARTS_S, LONG_COLD_STARTS_S = (30, 90, 240), (90, 240)
_REFERENCE = WINDOWS_S.index(300)
_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Part:
    """A trace or some days of it, at one cold start.

    Attributes:
        is_long: it is of several days.
        is_training: it is searched on.
    """

    path: Path
    cold_start_s: int
    is_long: bool
    is_training: bool


@dataclass(frozen=True, slots=True)
class Score:
    """What parameters come to on a part.

    Attributes:
        above_pct: replica-hours above the frontier of fixed windows at the same late share.
        overload_points: overload above that of a fixed window of 300 s, in points of the time.
    """

    part: Part
    above_pct: float
    overload_points: float


def parts_of(path: Path) -> Iterator[Part]:
    """Yields what is made of one trace."""
    is_long = read(path).duration_s >= 2 * TRAINING_DAYS * DAY_S * 0.75
    for cold_start in LONG_COLD_STARTS_S if is_long else SHORT_COLD_STARTS_S:
        yield Part(path, cold_start, is_long, is_training=True)
        if is_long:
            yield Part(path, cold_start, is_long, is_training=False)


def cut(workload: Workload, begin_s: int, end_s: int) -> Workload:
    """Returns the requests that arrive between two seconds, as a workload of its own."""
    within = (workload.arrivals >= begin_s) & (workload.arrivals < end_s)
    return Workload(
        workload.name, workload.arrivals[within] - begin_s, workload.services[within], end_s - begin_s
    )


@cache
def _sized(path: Path) -> Workload:
    workload = read(path)
    return workload.slowed(sizing(workload))


@cache
def _stage(part: Part) -> tuple[Workload, np.ndarray, tuple[Point, ...], float]:
    """The workload, its offered load, the frontier, and the overload of the reference window."""
    workload = _sized(part.path)
    if part.is_long:
        split = TRAINING_DAYS * DAY_S
        workload = cut(workload, 0, split) if part.is_training else cut(workload, split, workload.duration_s)
    offered = offered_load(workload)
    outcomes = [simulate(workload, offered, FixedWindow(window), part.cold_start_s) for window in WINDOWS_S]
    hull = lower_hull(Point(found.late_share, found.replica_hours) for found in outcomes)
    return workload, offered, tuple(hull), outcomes[_REFERENCE].overload_share


def score(part: Part, parameters: Parameters) -> Score:
    """Plays the operator's policy on a part."""
    workload, offered, hull, overload = _stage(part)
    found = simulate(workload, offered, Tuned(part.cold_start_s, parameters=parameters), part.cold_start_s)
    above = -distance(hull, Point(found.late_share, found.replica_hours)).below_pct
    return Score(part, above, 100 * (found.overload_share - overload))


def objective(scores: Sequence[Score]) -> float:
    """Returns what is to be small: the mean on long traces, and penalties where a bound is neared."""
    long = [found.above_pct for found in scores if found.part.is_long] or [0.0]
    short = [found.above_pct for found in scores if not found.part.is_long] or [0.0]
    overload = [found.overload_points for found in scores if found.part.is_long] or [0.0]
    return float(
        np.mean(long)
        + 0.3 * np.mean(np.maximum(short, 0))
        + 3 * max(0.0, max(short) - 0.3)
        + 1.5 * max(0.0, max(long) + 0.5)
        + 6 * max(0.0, max(overload) - 0.05)
        + 4 * np.mean(np.maximum(0, np.array(overload) - 0.03))
    )


def parameters_of(point: Sequence[float]) -> Parameters:
    """Returns the parameters that a point of the search stands for; the origin is near those chosen."""
    flat_cv = 0.4 * np.exp(0.3 * point[0])
    near = (
        Staffing(round(225 * np.exp(0.3 * point[1])), 1.9 + 0.5 * point[2]),
        Staffing(round(660 * np.exp(0.3 * point[3])), 1.3 + 0.5 * point[4]),
    )
    bursty_cv = flat_cv + 0.2 * np.exp(0.3 * point[5])
    return Parameters(flat_cv, bursty_cv, near, 1.1 + 0.5 * point[6], round(2400 * np.exp(0.3 * point[7])))


def search(parts: Sequence[Part], seconds: float, seed: int, executor: ProcessPoolExecutor) -> Parameters:
    """Searches by CMA-ES for so long, and prints whatever is better than before."""
    training = [part for part in parts if part.is_training]
    strategy = cma.CMAEvolutionStrategy([0.0] * _DIMENSIONS, 0.5, {"seed": seed, "verbose": -9})
    deadline, best = time.monotonic() + seconds, float("inf")
    while not strategy.stop() and time.monotonic() < deadline:
        points = strategy.ask()
        values = []
        for point in points:
            scores = evaluate(training, parameters_of(point), executor)
            values.append(objective(scores))
            if values[-1] < best:
                best = values[-1]
                print(f"{best:.3f} {parameters_of(point)}", flush=True)
        strategy.tell(points, values)
    return parameters_of(strategy.result.xbest) if strategy.result.xbest is not None else CHOSEN


def evaluate(parts: Sequence[Part], parameters: Parameters, executor: ProcessPoolExecutor) -> list[Score]:
    """Scores parameters on all parts."""
    return list(executor.map(score, parts, [parameters] * len(parts)))


def table(parts: Sequence[Part], parameters: Parameters, executor: ProcessPoolExecutor) -> None:
    """Prints what parameters come to, searched on and only looked at."""
    print(parameters)
    for found in evaluate(parts, parameters, executor):
        part = found.part
        kind = "searched on" if part.is_training else "looked at"
        print(
            f"{part.path.name:40} {part.cold_start_s:4} s  {kind:12} {found.above_pct:+6.2f} % "
            f"{found.overload_points:+6.2f} points of overload"
        )


def main() -> None:
    """Searches, and prints the chosen parameters beside the found ones."""
    parser = argparse.ArgumentParser(prog="search", description=__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder with *.csv.gz")
    parser.add_argument("--minutes", type=float, default=180, help="how long to search; 0 only prints tables")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    parts = [part for path in sorted(options.traces.glob("*.csv.gz")) for part in parts_of(path)]
    with ProcessPoolExecutor(os.cpu_count()) as executor:
        table(parts, CHOSEN, executor)
        if options.minutes:
            table(parts, search(parts, 60 * options.minutes, options.seed, executor), executor)


if __name__ == "__main__":
    main()
