"""Which share of harmful updates is caught, by size of the harm and by samples, and of harmless ones too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from zerolayer_bench.verdict.experiment import CALM, ROUGH, Ended, Update, play_all
from zerolayer_bench.verdict.traffic import Harm, Noise, Pool
from zerolayer_operator.decide.verdict import Terms

SAMPLES: Final = (100, 200, 500, 1000, 2000)
"""Requests on green by which an update is caught or not."""

ERROR_SIZES: Final = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
SLOWER_SIZES: Final = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0)
NONE: Final = "none"
KINDS: Final[dict[str, Callable[[float], Harm]]] = {
    NONE: lambda _: Harm(),
    "errors": lambda size: Harm(errors=size),
    "slower": lambda size: Harm(slower=size),
    "slower later": lambda size: Harm(slower=size, begins=50),
}
TERMS: Final = Terms(min_samples=SAMPLES[0])


@dataclass(frozen=True, slots=True)
class Scene:
    """Traffic of one kind.

    Attributes:
        name: For tables.
        noise: How unruly it is.
        per_look: Requests on green in an interval of 15 s.
        looks: Intervals of the soak.
        updates: Simulated for each harm.
        harms: Kinds and sizes of harm.
    """

    name: str
    noise: Noise
    per_look: int
    looks: int
    updates: int
    harms: tuple[tuple[str, float], ...]


ALL_HARMS: Final = (
    (NONE, 0.0),
    *(("errors", size) for size in ERROR_SIZES),
    *(("slower", size) for size in SLOWER_SIZES),
)
SCENES: Final = (
    Scene("30 requests a look", CALM, 30, 100, 100, ALL_HARMS),
    Scene("5 requests a look", CALM, 5, 400, 40, ALL_HARMS),
    Scene("30 a look, rough", ROUGH, 30, 100, 60, ALL_HARMS),
    Scene("a day", CALM, 30, 5760, 10, ((NONE, 0.0),)),
    Scene("a day, rough", ROUGH, 30, 5760, 10, ((NONE, 0.0),)),
    Scene("harm after 50 looks", CALM, 30, 150, 40, (("slower later", 2.5), ("slower later", 5.0))),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated update and how it ended."""

    scene: str
    kind: str
    size: float
    seed: int
    ended: Ended


@dataclass(frozen=True, slots=True)
class Power:
    """What became of all updates with one harm in one scene.

    Attributes:
        scene: Its name.
        kind: Of the harm.
        size: Of the harm.
        updates: All of them.
        caught: Those that had failed by so many samples, for each of `SAMPLES`.
        failed: Those that had failed by the end of the soak.
    """

    scene: str
    kind: str
    size: float
    updates: int
    caught: tuple[int, ...]
    failed: int


def run(scenes: Sequence[Scene], workers: int) -> Iterator[Run]:
    """Plays all updates of some scenes."""
    jobs = [
        (scene, kind, size, seed)
        for scene in scenes
        for kind, size in scene.harms
        for seed in range(scene.updates)
    ]
    updates = (
        Update(seed, scene.noise, KINDS[kind](size), TERMS, scene.looks, _pool(scene))
        for scene, kind, size, seed in jobs
    )
    for (scene, kind, size, seed), ended in zip(jobs, play_all(updates, workers), strict=True):
        yield Run(scene.name, kind, size, seed, ended)


def powers(runs: Sequence[Run]) -> list[Power]:
    """Shares caught, one row for each harm in each scene, in the order of the runs."""
    return [
        _power(*key, [item.ended for item in group])
        for key, group in groupby(runs, key=lambda item: (item.scene, item.kind, item.size))
    ]


def _power(scene: str, kind: str, size: float, ended: Sequence[Ended]) -> Power:
    failed = [item.samples for item in ended if item.failed]
    caught = tuple(sum(samples <= most for samples in failed) for most in SAMPLES)
    return Power(scene, kind, size, len(ended), caught, len(failed))


def _pool(scene: Scene) -> Pool:
    return Pool(pods=10, weight=0.1, requests=10 * scene.per_look)
