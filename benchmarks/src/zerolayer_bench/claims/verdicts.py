"""When a figure counts as reached, and which mark a claim gets; what was measured decides alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """What came of a claim."""

    HOLDS = "holds"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured value and the interval it may lie in; without one, the value alone."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """A value that was counted, not sampled."""
        return cls(value, value, value)


@dataclass(frozen=True, slots=True)
class Part:
    """One figure of a claim.

    Attributes:
        what: what is compared.
        introduced: the figure as it was introduced.
        needed: what the measured value has to be at most, or at least.
        measured: None where it was not measured, for the reason in `remark`.
        at_most: whether less is better.
        neutral: the value that would mean no effect; the whole interval has to lie on its better side.
            None asks that of `needed`.
        unit: of both values; empty for ratios.
    """

    what: str
    introduced: str
    needed: float
    measured: Estimate | None = None
    at_most: bool = True
    neutral: float | None = None
    unit: str = ""
    remark: str = ""

    @property
    def reached(self) -> bool:
        """Whether the value is as good as needed, and chance alone does not explain it."""
        if self.measured is None:
            return False
        bound = self.needed if self.neutral is None else self.neutral
        if self.at_most:
            return self.measured.value <= self.needed and self.measured.high <= bound
        return self.measured.value >= self.needed and self.measured.low >= bound


def mark(parts: Sequence[Part]) -> Mark:
    """Every part reached: holds. Some: partly. None: not reproduced. What is not measured is not reached.

    Raises:
        ValueError: there is no part.
    """
    if not parts:
        raise ValueError("a claim without a part can't be judged")
    reached = sum(part.reached for part in parts)
    if reached == len(parts):
        return Mark.HOLDS
    return Mark.PARTLY if reached else Mark.NOT_REPRODUCED
