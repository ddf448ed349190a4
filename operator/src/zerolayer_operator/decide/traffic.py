"""Which revision gets which requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pinned:
    """A revision that requests may name, so that a conversation stays with it.

    Attributes:
        revision: The revision.
        anchor: Version of its anchor, where requests may name that instead: it is the only one that has it.
    """

    revision: str
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Where requests go.

    Attributes:
        serving: Revision that gets the requests which name none.
        canary: Revision that is tried out, and gets some of them instead.
        weight: How many of them, in percent; 0 while it gets none.
        pinned: Revisions that requests may name.
        both: Whether the pool's Service selects both revisions, so that each gets requests by the number of
            its ready workers: there is no gateway that could weigh them.
    """

    serving: str
    canary: str | None = None
    weight: int = 0
    pinned: tuple[Pinned, ...] = ()
    both: bool = False
