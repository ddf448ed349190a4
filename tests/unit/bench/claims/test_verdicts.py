"""What was measured decides the mark alone."""

import pytest

from zerolayer_bench.claims.verdicts import Estimate, Mark, Part, mark


def part(
    value: float | None, low: float, high: float, *, at_most: bool = True, neutral: float | None = 1.0
) -> Part:
    measured = None if value is None else Estimate(value, low, high)
    return Part("a ratio", "twice as good", 0.5 if at_most else 2.0, measured, at_most, neutral)


@pytest.mark.parametrize(
    ("judged", "reached"),
    [
        (part(0.5, 0.4, 0.9), True),
        (part(0.51, 0.4, 0.9), False),
        (part(0.5, 0.4, 1.01), False),
        (part(0.5, 0.4, 0.5, neutral=None), True),
        (part(0.45, 0.4, 0.51, neutral=None), False),
        (part(2.0, 1.1, 3.0, at_most=False), True),
        (part(1.99, 1.1, 3.0, at_most=False), False),
        (part(2.0, 0.99, 3.0, at_most=False), False),
        (part(2.5, 1.9, 3.0, at_most=False, neutral=None), False),
        (part(None, 0.0, 0.0), False),
    ],
)
def test_a_figure_is_reached(judged: Part, *, reached: bool) -> None:
    assert judged.reached is reached


YES, NO, ABSENT = part(0.4, 0.3, 0.5), part(0.9, 0.8, 1.2), part(None, 0.0, 0.0)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([YES], Mark.HOLDS),
        ([YES, YES], Mark.HOLDS),
        ([YES, NO], Mark.PARTLY),
        ([YES, ABSENT], Mark.PARTLY),
        ([NO], Mark.NOT_REPRODUCED),
        ([NO, ABSENT], Mark.NOT_REPRODUCED),
        ([ABSENT], Mark.NOT_REPRODUCED),
    ],
)
def test_the_mark_follows_from_the_figures(parts: list[Part], expected: Mark) -> None:
    assert mark(parts) is expected


def test_nothing_is_not_a_claim() -> None:
    with pytest.raises(ValueError, match="without a part"):
        mark([])
