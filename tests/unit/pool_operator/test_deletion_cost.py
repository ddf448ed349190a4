"""Which workers are to go first, and when that is written down."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing import observed
from zerolayer_operator.decide.deletion_cost import (
    LOWEST,
    MOST,
    TOLERANCE,
    Candidate,
    Outlook,
    cost_changes,
    foreseeable,
    planned_costs,
)
from zerolayer_operator.observe.load import Requests
from zerolayer_operator.observe.state import DeletionCost


def steady(**fields: Any) -> Outlook:
    """A pool that the load just fills, with fields replaced."""
    return replace(Outlook(workers=5, floor=1, ceiling=8, load=4.2, window_s=300), **fields)


@pytest.mark.parametrize(
    ("what", "outlook", "going"),
    [
        ("the load needs them all", steady(), 0),
        ("it just fits on one fewer", steady(load=4.0), 1),
        ("it fits barely", steady(workers=20, ceiling=30, load=19.0), 1),
        ("it fits on two", steady(load=1.5), 3),
        ("not below the floor", steady(load=0.0, floor=3), 2),
        ("nothing is known of the load", steady(load=None), 0),
        ("the author allows fewer", steady(load=None, ceiling=4), 1),
        ("the pool grows", steady(workers=4), 0),
        ("the window gives no warning", steady(window_s=15), 4),
        ("no warning, but nothing is known of the load", steady(window_s=15, load=None), 0),
        ("they go one at a time", steady(load=1.5, one_by_one=True), 1),
        ("more go than can be told apart", steady(workers=60, ceiling=90, load=3.0), MOST),
        ("nobody is there", steady(workers=0, load=0.0), 0),
    ],
)  # fmt: skip
def test_a_scale_down_is_foreseeable(what: str, outlook: Outlook, going: int) -> None:
    assert foreseeable(outlook) == going, what


def run(**running: float) -> dict[str, Requests]:
    return {name: Requests(count, 0) for name, count in running.items()}


def workers(*names: str, **costs: int) -> list[Candidate]:
    return [Candidate(name, costs.get(name)) for name in sorted({*names, *costs})]


FULL = {"a": Requests(8, 0), "b": Requests(8, 2)}


@pytest.mark.parametrize(
    ("what", "candidates", "load", "going", "changes"),
    [
        ("nothing is foreseeable", workers(*"abc"), run(a=1, b=2, c=3), 0, {}),
        ("the idlest goes first", workers(*"abc"), run(a=3, b=1, c=2), 1, {"b": -10}),
        ("two go", workers(*"abc"), run(a=3, b=1, c=2), 2, {"b": -10, "c": -9}),
        ("the shorter queue", workers(*"ab"), FULL, 1, {"a": -10}),
        ("one more than the idlest may stay", workers("a", b=-10), run(a=1, b=2), 1, {}),
        ("two more may not", workers("a", b=-10), run(a=1, b=3), 1, {"a": -10, "b": None}),
        ("two in the queue neither", workers("a", b=-10), FULL, 1, {"a": -10, "b": None}),
        ("what is true stays without need", workers("a", b=-10), run(a=1, b=1), 0, {}),
        ("what is not goes", workers("a", b=-10), run(a=1, b=3), 0, {"b": None}),
        ("a worker without figures is not picked", workers(*"ab"), run(b=7), 1, {"b": -10}),
        ("a cost without figures goes", workers("a", b=-10), run(a=3), 0, {"b": None}),
        ("and the next one stays", workers("a", b=-10, c=-9), run(a=3, c=3), 1, {"b": None}),
        ("nothing is known of any", workers("a", b=-10), {}, 2, {"b": None}),
        ("the first has gone", workers("a", "b", c=-9), run(a=4, b=5, c=3), 2, {"a": -8}),
        ("the last places are taken", workers("a", "b", c=-1), run(a=4, b=5, c=3), 2, {"c": -10, "a": -9}),
        ("the second is judged alone", workers("c", a=-10, b=-9), run(a=0, b=5, c=6), 2, {}),
        ("the second is busier", workers("c", a=-10, b=-9), run(a=0, b=9, c=6), 2, {"c": -9, "b": None}),
        ("two have one cost", workers(a=-10, b=-10), run(a=0, b=0), 2, {"b": -9}),
        ("a cost that is none of ours by its value", workers("a", b=7), run(a=0, b=0), 1, {"b": -10}),
    ],
)  # fmt: skip
def test_costs_are_written(
    what: str,
    candidates: list[Candidate],
    load: dict[str, Requests],
    going: int,
    changes: dict[str, int | None],
) -> None:
    found = cost_changes(candidates, load, going)
    assert list(found.items()) == list(changes.items()), what


def test_only_the_operators_own_costs_of_living_workers_are_its_to_change() -> None:
    pods = (
        observed.pod("rev", "plain"),
        observed.pod("rev", "ours", deletion_cost=DeletionCost("-10", ours=True)),
        observed.pod("rev", "users", deletion_cost=DeletionCost("dear", ours=False)),
        observed.pod("rev", "going", gone_by=observed.NOW),
        observed.pod("old", "other"),
    )
    load = {pod.name: Requests(0, 0) for pod in pods} | {"ours": Requests(4, 0)}
    pool = observed.pool(observed.spec(), pods=pods)
    assert planned_costs(pool, "rev", load, 5) == {"plain": -10, "ours": -9}


def those_that_go(costs: Mapping[str, int | None], count: int) -> list[str]:
    """The pods that a ReplicaSet's controller ends, in its order; pods without a cost count as of cost 0."""
    return sorted(costs, key=lambda name: (costs[name] or 0, name))[:count]


COSTS = st.none() | st.integers(LOWEST, -1) | st.integers()
POOL = st.lists(
    st.tuples(COSTS, st.none() | st.builds(Requests, st.integers(0, 9), st.integers(0, 3))), max_size=30
)


@given(POOL, st.integers(0, MOST))
def test_whoever_goes_is_among_the_idlest(pool: list[tuple[int | None, Requests | None]], going: int) -> None:
    candidates = [Candidate(f"pod-{number}", cost) for number, (cost, _) in enumerate(pool)]
    known = {f"pod-{number}": load for number, (_, load) in enumerate(pool) if load is not None}

    costs = dict(candidates) | cost_changes(candidates, known, going)
    given_costs = [cost for cost in costs.values() if cost is not None]
    assert len(given_costs) == len(set(given_costs)) <= MOST
    assert all(LOWEST <= cost <= -1 for cost in given_costs)
    assert all(name in known for name, cost in costs.items() if cost is not None)

    rest = dict(known)
    for name in those_that_go(costs, min(going, len(known))):
        assert rest[name].running <= min(load.running for load in rest.values()) + TOLERANCE
        del rest[name]
    settled = [Candidate(name, cost) for name, cost in costs.items()]
    assert cost_changes(settled, known, going) == {}


@given(
    st.builds(
        Outlook,
        workers=st.integers(0, 100),
        floor=st.integers(0, 100),
        ceiling=st.integers(0, 100),
        load=st.none() | st.floats(0, 200),
        window_s=st.integers(0, 3600),
        one_by_one=st.booleans(),
    )
)
def test_every_step_down_of_an_autoscaler_was_foreseeable(outlook: Outlook) -> None:
    going = foreseeable(outlook)
    assert 0 <= going <= min(MOST, outlook.workers)
    if outlook.load is not None and outlook.floor <= outlook.ceiling:
        wanted = min(max(math.ceil(outlook.load), outlook.floor), outlook.ceiling)
        assert (going > 0) >= (wanted < outlook.workers)
