"""A decision as it is told."""

from dataclasses import dataclass
from typing import Literal

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Something that was decided about a pool, and how to tell it.

    Attributes:
        key: Names the decision among all of the pool's.
    """

    key: str
    reason: str
    message: str
    type: EventType = "Normal"
