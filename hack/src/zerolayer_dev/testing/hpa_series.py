"""Generated load series, each with an autoscaler's settings and what people do to them meanwhile."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, pairwise
from random import Random

from zerolayer_dev.testing.metrics_api import Answer, Fault
from zerolayer_operator.decide.hpa_replay import Behavior, Bounds, Policy, PolicyKind, Rules, Select

WINDOW_S = 7
"""`--horizontal-pod-autoscaler-downscale-stabilization` of the controller that the series are for."""
DEFAULTS = Behavior(down=replace(Behavior().down, window_s=WINDOW_S))
_TARGET_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Setting:
    """What an autoscaler's spec says; no behavior is a spec without any."""

    bounds: Bounds
    behavior: Behavior | None


_Phases = tuple[tuple[int, Setting], ...]
_Edits = tuple[tuple[float, int], ...]
_NO_BEHAVIOR = Setting(Bounds(2, 20), None)


@dataclass(frozen=True, slots=True)
class Series:
    """One autoscaler's load and life.

    Attributes:
        name: of the autoscaler, its target and its metric.
        size: of the target at first, in pods.
        answers: what the metric is, second by second; the last one stays.
        settings: the autoscaler's spec, each from a second on; the first from 0.
        edits: sizes that somebody sets by hand, each at a second.
        target_milli: what one pod is to take of the metric, in thousandths.
    """

    name: str
    size: int
    answers: tuple[Answer, ...]
    settings: tuple[tuple[float, Setting], ...]
    edits: tuple[tuple[float, int], ...] = ()
    target_milli: int = _TARGET_MILLI

    def answer(self, second: float) -> Answer:
        """Returns what a query gets, given seconds since the start."""
        return self.answers[min(max(int(second), 0), len(self.answers) - 1)]


def generate(random: Random, seconds: int) -> list[Series]:
    """Returns series of this many seconds."""
    shaped = [
        _shaped(name, shape, random, seconds)
        for shape in _SHAPES
        for number in range(1, 4)
        for name in [f"{shape.__name__.strip('_').replace('_', '-')}-{number}"]
    ]
    return shaped + _special(random, seconds)


def _shaped(name: str, shape: Callable[[Random, int], list[float]], random: Random, seconds: int) -> Series:
    target = random.choice((1, 50, 700, 1000, 12_345))
    loads = [_items(round(pods * target), random) for pods in shape(random, seconds)]
    return Series(
        name,
        size=random.randint(1, 10),
        answers=tuple(_with_faults(loads, random)),
        settings=tuple(_settings(random, seconds)),
        edits=tuple(_edits(random, seconds)),
        target_milli=target,
    )


def _items(load_milli: int, random: Random) -> Answer:
    """Splits a load into the items of one to three sources."""
    cuts = sorted(random.randint(0, load_milli) for _ in range(random.choice((0, 0, 1, 2))))
    edges = [0, *cuts, load_milli]
    return Answer(tuple(upper - lower for lower, upper in pairwise(edges)))


def _with_faults(answers: list[Answer], random: Random) -> list[Answer]:
    """Makes a part of the answers late, missing or broken, for one second or several."""
    second = 0
    while second < len(answers):
        length = random.randint(1, 4)
        kind = random.choices(("fine", "missing", *Fault, "late"), weights=(16, 1, 1, 1, 1))[0]
        for position in range(second, min(second + length, len(answers))):
            if isinstance(kind, Fault):
                answers[position] = Answer(fault=kind)
            elif kind == "missing":
                answers[position] = Answer()
            elif kind == "late":
                answers[position] = replace(answers[position], delay_s=random.uniform(0.1, 1.2))
        second += length
    return answers


def _settings(random: Random, seconds: int) -> list[tuple[float, Setting]]:
    setting = Setting(_bounds(random), _behavior(random))
    settings = [(0.0, setting)]
    for at in sorted(random.uniform(4, seconds - 4) for _ in range(random.randint(1, 6))):
        changed = random.choice(("bounds", "bounds", "behavior", "windows"))
        if changed == "bounds":
            setting = replace(setting, bounds=_bounds(random))
        elif changed == "behavior" or setting.behavior is None:
            setting = replace(setting, behavior=_behavior(random))
        else:
            setting = replace(setting, behavior=_other_windows(setting.behavior, random))
        settings.append((at, setting))
    return settings


def _bounds(random: Random) -> Bounds:
    minimum = random.choice((1, 1, 1, 2, 3, 6, 12))
    return Bounds(minimum, minimum + random.choice((0, 1, 3, 8, 20, 500)))


def _behavior(random: Random) -> Behavior | None:
    kind = random.choices(("own", "none", "defaults"), weights=(8, 1, 1))[0]
    if kind == "own":
        return Behavior(_rules(random, (0, 0, 0, 2, 4, 8)), _rules(random, (0, 2, 3, 5, WINDOW_S, 10, 15)))
    return None if kind == "none" else DEFAULTS


def _rules(random: Random, windows: Sequence[int]) -> Rules:
    policies = tuple(_policy(random) for _ in range(random.choice((1, 1, 2, 3))))
    select = random.choices(tuple(Select), weights=(6, 3, 1))[0]
    return Rules(random.choice(windows), policies, select, random.choice((0.1, 0.1, 0.0, 0.05, 0.33)))


def _policy(random: Random) -> Policy:
    period = random.choice((1, 2, 3, 5, 8, 12, 20))
    if random.choice((True, False)):
        return Policy(PolicyKind.PODS, random.choice((1, 1, 2, 3, 5)), period)
    return Policy(PolicyKind.PERCENT, random.choice((1, 10, 25, 50, 100, 250)), period)


def _other_windows(behavior: Behavior, random: Random) -> Behavior:
    return Behavior(
        replace(behavior.up, window_s=random.choice((0, 3, 6))),
        replace(behavior.down, window_s=random.choice((0, 3, 6, 20))),
    )


def _edits(random: Random, seconds: int) -> list[tuple[float, int]]:
    edits = [
        (random.uniform(3, seconds - 3), random.choice((1, 2, 5, 9, 30))) for _ in range(random.randint(0, 3))
    ]
    if random.choice((True, False)):  # off by hand for a while
        off = random.uniform(3, seconds - 15)
        edits += [(off, 0), (off + random.uniform(2, 8), random.randint(1, 8))]
    return sorted(edits)


def _flat(random: Random, seconds: int) -> list[float]:
    level = random.uniform(0.5, 12)
    return [level * random.uniform(0.95, 1.05) for _ in range(seconds)]


def _ramps(random: Random, seconds: int) -> list[float]:
    top, length = random.uniform(5, 40), random.randint(8, seconds)
    return [top * abs((second % (2 * length)) / length - 1) for second in range(seconds)]


def _steps(random: Random, seconds: int) -> list[float]:
    loads: list[float] = []
    while len(loads) < seconds:
        loads += [random.uniform(0, 20)] * random.randint(3, 12)
    return loads[:seconds]


def _bursts(random: Random, seconds: int) -> list[float]:
    base, burst, chance = random.uniform(0.5, 4), random.uniform(8, 40), random.uniform(0.05, 0.3)
    return [burst if random.random() < chance else base for _ in range(seconds)]


def _sawtooth(random: Random, seconds: int) -> list[float]:
    top, length = random.uniform(4, 15), random.randint(5, 15)
    return [top * (second % length) / length for second in range(seconds)]


def _waves(random: Random, seconds: int) -> list[float]:
    middle, length = random.uniform(3, 12), random.uniform(8, 40)
    return [middle * (1 + math.sin(math.tau * second / length)) for second in range(seconds)]


def _zero_at_times(random: Random, seconds: int) -> list[float]:
    return [max(0.0, load - 8) for load in _steps(random, seconds)]


_SHAPES = (_flat, _ramps, _steps, _bursts, _sawtooth, _waves, _zero_at_times)


def _special(random: Random, seconds: int) -> list[Series]:
    """Returns what generated series would hardly ever meet."""
    huge = (10**3, 2**31 * 10**3, 2**62, -(10**6), 10**4, 5 * 10**11)
    jumps = tuple(Answer((huge[second // 3 % len(huge)],) * 2) for second in range(seconds))
    whole_range = Setting(Bounds(1, 2**31 - 1), replace(DEFAULTS, down=replace(DEFAULTS.down, window_s=2)))
    return [
        Series("defaults", 3, _noise(random, seconds), ((0, Setting(Bounds(1, 20), DEFAULTS)),)),
        Series("no-behavior", 3, _noise(random, seconds), ((0, _NO_BEHAVIOR),), ((seconds / 3, 1),)),
        Series("huge-values", 1, jumps, ((0, whole_range),)),
        *(_huge_policy(kind, _noise(random, seconds, 20)) for kind in PolicyKind),
        *(_at_the_edge(tolerance, size) for tolerance, size in ((0.1, 10), (0.05, 20), (0.33, 100))),
        *(
            Series(f"{name}-{number}", 3, _noise(random, seconds), _cycle(seconds, phases), edits)
            for name, phases, edits in _cycles()
            for number in range(1, 3)
        ),
    ]


def _noise(random: Random, seconds: int, pods: int = 1) -> tuple[Answer, ...]:
    return tuple(Answer((round(1000 * random.uniform(pods, 16 * pods)),)) for _ in range(seconds))


def _at_the_edge(tolerance: float, size: int) -> Series:
    """Returns a load that a tolerance just lets pass: the size stays."""
    rules = Rules(0, Behavior().up.policies, tolerance=tolerance)
    loads = [round(size * _TARGET_MILLI * share) for share in (1, 1 + tolerance, 1, 1 - tolerance)]
    return Series(
        f"at-the-edge-of-{tolerance}",
        size,
        tuple(Answer((load,)) for load in loads * 100),
        ((0, Setting(Bounds(1, 200), Behavior(rules, rules))),),
    )


def _huge_policy(kind: PolicyKind, answers: tuple[Answer, ...]) -> Series:
    setting = _both(0, Policy(kind, 2**31 - 1, 3), maximum=400)
    return Series(f"huge-{kind.lower()}", 120, answers, ((0, setting),), ((20, 1), (40, 300)))


def _both(window_s: int, *policies: Policy, maximum: int = 20) -> Setting:
    rules = Rules(window_s, policies)
    return Setting(Bounds(1, maximum), Behavior(rules, rules))


def _cycles() -> list[tuple[str, _Phases, _Edits]]:
    """Returns phases, in seconds each, after which memories count that a shorter setting had given up."""
    pods, free = PolicyKind.PODS, (Policy(PolicyKind.PERCENT, 2000, 1),)
    short, long = Rules(1, free), Rules(14, free)

    def alternating(first: Behavior, then: Behavior) -> _Phases:
        return (8, Setting(Bounds(1, 20), first)), (15, Setting(Bounds(1, 20), then))

    return [
        (
            "window-widened",
            alternating(Behavior(short, long), Behavior(short, short)),
            ((24, 20), (47, 20), (70, 20)),
        ),
        (
            "up-window-widened",
            alternating(Behavior(long, short), Behavior(short, short)),
            ((24, 1), (47, 1), (70, 1)),
        ),
        (
            "period-lengthened",
            (
                (6, _both(0, Policy(pods, 9, 14), Policy(pods, 2, 2))),
                (3, _both(0, Policy(pods, 2, 1))),
            ),
            (),
        ),
        ("behavior-removed", ((5, _both(0, Policy(pods, 5, 20))), (3, _NO_BEHAVIOR)), ()),
    ]


def _cycle(seconds: int, phases: _Phases) -> tuple[tuple[float, Setting], ...]:
    settings: list[tuple[float, Setting]] = []
    at = 0.0
    for length, setting in cycle(phases):
        if at > seconds - 4:
            return tuple(settings)
        settings.append((at, setting))
        at += length
    raise AssertionError("a cycle has no end")
