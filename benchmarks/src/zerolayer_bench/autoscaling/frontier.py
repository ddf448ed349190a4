"""The line that fixed windows draw between what is late and what it costs, and the distance from it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Point(NamedTuple):
    """Late share of the requests, and replica-hours."""

    late: float
    hours: float


def lower_hull(points: Iterable[Point]) -> list[Point]:
    """Returns the falling part of the lower convex hull, by rising late share."""
    hull: list[Point] = []
    for point in sorted(set(points)):
        while len(hull) >= 2 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        if not hull or point.hours < hull[-1].hours or _turns_down_later(hull, point):
            hull.append(point)
    return [point for at, point in enumerate(hull) if all(point.hours < before.hours for before in hull[:at])]


def _turns_down(first: Point, middle: Point, last: Point) -> bool:
    """Tells whether the middle point lies on or above the line between its neighbours."""
    rise = (middle.late - first.late) * (last.hours - first.hours)
    return rise - (middle.hours - first.hours) * (last.late - first.late) <= 0


def _turns_down_later(hull: Sequence[Point], point: Point) -> bool:
    return point.late > hull[-1].late


class Distance(NamedTuple):
    """How much cheaper than the frontier at the same late share, in per cent; negative is dearer.

    `outside` where the late share lies beyond the frontier's ends, and the nearer end was taken.
    """

    below_pct: float
    outside: bool


def distance(hull: Sequence[Point], point: Point) -> Distance:
    """Returns a policy's distance from a frontier."""
    hours = _hours_at(hull, point.late)
    outside = not hull[0].late <= point.late <= hull[-1].late
    return Distance(100 * (1 - point.hours / hours), outside)


def _hours_at(hull: Sequence[Point], late: float) -> float:
    if late <= hull[0].late:
        return hull[0].hours
    for left, right in pairwise(hull):
        if late <= right.late:
            share = (late - left.late) / (right.late - left.late)
            return left.hours + share * (right.hours - left.hours)
    return hull[-1].hours
