"""The line that fixed windows draw, and distances from it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zerolayer_bench.autoscaling.frontier import Point, distance, lower_hull

HULL = [Point(0.0, 12.0), Point(0.1, 10.0), Point(0.3, 9.0)]
points = st.builds(Point, st.floats(0, 1), st.floats(1, 100))


def test_only_the_falling_lower_edge_counts() -> None:
    inside = [Point(0.1, 11.5), Point(0.2, 9.8), Point(0.5, 9.5), Point(0.3, 9.2)]

    assert lower_hull([*inside, *HULL]) == HULL


@pytest.mark.parametrize(
    ("point", "below", "outside"),
    [
        (Point(0.1, 10.0), 0.0, False),
        (Point(0.05, 11.0), 0.0, False),
        (Point(0.2, 9.5), 0.0, False),
        (Point(0.2, 9.5 * 0.98), 2.0, False),
        (Point(0.2, 9.5 * 1.03), -3.0, False),
        (Point(0.4, 9.0 * 0.9), 10.0, True),
    ],
)
def test_distance(point, below, outside) -> None:
    found = distance(HULL, point)

    assert found.below_pct == pytest.approx(below)
    assert found.outside is outside


def test_a_single_point_is_a_frontier() -> None:
    assert distance([Point(0.1, 10.0)], Point(0.1, 9.0)).below_pct == pytest.approx(10.0)


@given(st.lists(points, min_size=1, max_size=12), st.data())
def test_no_mixture_of_two_settings_is_below_the_hull(settings, data) -> None:
    hull = lower_hull(settings)
    one, other = data.draw(st.sampled_from(settings)), data.draw(st.sampled_from(settings))
    share = data.draw(st.floats(0, 1))
    mixed = Point(*(share * a + (1 - share) * b for a, b in zip(one, other, strict=True)))
    assume(mixed.late >= hull[0].late)

    assert distance(hull, mixed).below_pct <= 1e-6
