"""Waiting for something that another process does: always for a condition, always with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


class StillWaitingError(AssertionError):
    """The deadline passed; the message says what was waited for and what was seen last."""


def wait_for(
    look: Callable[[], Seen],
    *,
    what: str,
    seconds: float,
    until: Callable[[Seen], bool] = bool,
    interval: float = 0.25,
) -> Seen:
    """Looks until what is seen satisfies `until`, and returns it.

    Args:
        look: reads the present state; what it raises passes through.
        what: the awaited condition in words, for the message.
        seconds: deadline, from now.
        until: whether the state is the awaited one.
        interval: seconds between two looks.

    Raises:
        StillWaitingError: `seconds` have passed.
    """
    deadline = time.monotonic() + seconds
    while not until(seen := look()):
        if time.monotonic() > deadline:
            raise StillWaitingError(f"{what}: not within {seconds:.0f} s; last seen: {seen!r}")
        time.sleep(interval)
    return seen
