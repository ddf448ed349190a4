"""Answers to users' own queries; no I/O."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What a query came to.

    Attributes:
        value: Its value, which may be infinite or not a number; ``None`` where there is none.
        unknown: Why there is none, for people.
    """

    value: float | None = None
    unknown: str = ""
