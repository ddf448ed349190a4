"""Which workers go first when a pool shrinks: the idlest.

Where a ReplicaSet has too many ready pods, its controller ends those of the lowest
``controller.kubernetes.io/pod-deletion-cost``, within milliseconds of a scale-down: the costs have to be in
place before. It is best effort: pods without a node, pending and not ready ones go before all others.

Only the workers that may go soon get a cost, so that few writes are needed: the idlest -10, the next -9 and
so on, and all others none. A cost stays as long as it is true: as long as its worker, when its turn comes,
runs at most one request more than the idlest of the rest. One that is not true any more is taken away, be a
scale-down foreseeable or not.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from zerolayer_operator.observe.load import STEP_S, Requests
from zerolayer_operator.observe.state import ObservedPool

LOWEST: Final = -10
"""Cost of the worker that is to go first."""

MOST: Final = -LOWEST
"""Workers that have a cost at the same time; of more that go at once, the idlest are told apart."""

TOLERANCE: Final = 1
"""Requests that a worker may have more than the idlest one before it loses its turn."""

_NO_WARNING_S: Final = 2 * STEP_S
"""A shorter window may end before a lower load is seen here."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What tells whether a pool is about to shrink.

    Attributes:
        workers: That the serving revision has.
        floor: Fewest that the autoscaler is to leave, from now on.
        ceiling: Most that it may have.
        load: What the autoscaler saw last of the metric that it follows, in workers; ``None`` where it sees
            nothing, and so gives nothing up.
        window_s: How long the load must have been lower before workers are given up, in seconds.
        one_by_one: Whether workers go one at a time.
    """

    workers: int
    floor: int
    ceiling: int
    load: float | None = None
    window_s: int = 0
    one_by_one: bool = False


class Candidate(NamedTuple):
    """A worker whose cost is the operator's to set.

    Attributes:
        name: Of its pod.
        cost: That the operator has given it; ``None`` for none.
    """

    name: str
    cost: int | None = None


def foreseeable(outlook: Outlook) -> int:
    """How many workers may go before the load is looked at again.

    A scale-down is foreseeable while the floor under the pool's size lets it and the load that the autoscaler
    saw last fits on fewer workers, or the autoscaler may have no more than fewer. It waits for its window to
    pass, and lets a tenth of difference be; here neither counts, and what it asks for comes too late.
    """
    left = outlook.workers
    if outlook.load is not None:
        needed = 0 if outlook.window_s < _NO_WARNING_S else math.ceil(outlook.load - 1e-9)
        left = min(left, max(needed, outlook.floor))
    going = outlook.workers - max(0, min(left, outlook.ceiling))
    return min(going, 1 if outlook.one_by_one else MOST)


def planned_costs(
    pool: ObservedPool, revision: str | None, requests: Mapping[str, Requests], going: int
) -> dict[str, int | None]:
    """The costs to write to a revision's pods; those that somebody else has set stand, and are left alone.

    Args:
        pool: The pool.
        revision: The one that is sized.
        requests: As for `cost_changes`.
        going: As for `cost_changes`.
    """
    candidates = [
        Candidate(pod.name, None if pod.deletion_cost is None else int(pod.deletion_cost.value))
        for pod in pool.pods
        if pod.revision == revision
        and not pod.deleting
        and (pod.deletion_cost is None or pod.deletion_cost.ours)
    ]
    return cost_changes(candidates, requests, going)


def cost_changes(
    workers: Iterable[Candidate], requests: Mapping[str, Requests], going: int
) -> dict[str, int | None]:
    """The costs to write, those of the idlest first; ``None`` takes a worker's cost away.

    Args:
        workers: Of the serving revision, without those whose cost somebody else has set.
        requests: What they had to do at the last look, by name, as far as that is fresh. Of a worker that is
            missing nothing is known: it is not picked.
        going: How many of them may go before the next look.
    """
    costs = {worker.name: worker.cost for worker in workers}
    rest = {name: requests[name] for name in costs if name in requests}
    first = list(_still_true(costs, rest))[:MOST]
    for name in first:
        del rest[name]
    first += sorted(rest, key=lambda name: (rest[name], name))[: max(0, min(going, MOST) - len(first))]
    wanted = dict(_numbered(first, costs))
    return {name: wanted.get(name) for name in (*wanted, *costs) if wanted.get(name) != costs[name]}


def _still_true(costs: Mapping[str, int | None], requests: Mapping[str, Requests]) -> Iterator[str]:
    """The workers that have a cost and may go in this order."""
    rest = dict(requests)
    marked = {name: cost for name, cost in costs.items() if cost is not None}
    for name in sorted(marked, key=lambda name: (marked[name], name)):
        if name in rest and _idle_enough(rest[name], min(rest.values())):
            del rest[name]
            yield name


def _idle_enough(worker: Requests, idlest: Requests) -> bool:
    return worker.running <= idlest.running + TOLERANCE and worker.waiting <= idlest.waiting + TOLERANCE


def _numbered(names: list[str], costs: Mapping[str, int | None]) -> Iterator[tuple[str, int]]:
    """Rising costs; those that are there stay where there is room for the rest after them."""
    last = LOWEST - 1
    for place, name in enumerate(names):
        present, following = costs[name], len(names) - place - 1
        kept = present is not None and last < present < -following
        last = present if kept and present is not None else last + 1
        yield name, last
