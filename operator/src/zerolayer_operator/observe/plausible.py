"""What a pool can't have done, whoever says so; no I/O.

Reasons hold no figures: what goes on is to be told once, though its figures differ each time.
"""

from collections.abc import Mapping
from typing import Final

from zerolayer_operator.observe.load import Counted

HIGHEST_SHARE: Final = 1.05
"""Busy share beyond which a figure can't be right; that of a full pool, with its jitter, is below."""

_SLOT_TOLERANCE: Final = 1.1
"""Scrapes happen at their own times, not at those written beside them."""

_LARGEST: Final = 1e15


def is_number(value: float) -> bool:
    """Whether a figure is a number that any of the figures could have."""
    return 0 <= value <= _LARGEST


def no_number(figures: Mapping[str, float]) -> str | None:
    """Which of some figures is no number, or a negative or absurd one, as the end of a sentence."""
    wrong = next((name for name, value in figures.items() if not 0 <= value <= _LARGEST), None)
    return None if wrong is None else f"what is no number, or an impossible one, for {wrong}"


def implausible(counted: Counted, busy_share: float, slots: float) -> str | None:
    """Why figures can't be true, as the end of a sentence; ``None`` where they may be.

    Args:
        counted: What all workers counted.
        busy_share: Share of their capacity in use.
        slots: Requests that they can run at once, all together.
    """
    figures = {
        "requests that came": counted.arrivals,
        "busy slots": counted.busy_s,
        "waiting requests": counted.queued_s,
        "requests that ended": counted.finished,
        "time that requests took": counted.service_s,
        "utilization": busy_share,
        "slots": slots,
    }
    fault = no_number(figures)
    if fault is None and busy_share > HIGHEST_SHARE:
        fault = "a utilization above 100 %"
    if fault is None and counted.busy_s > slots * counted.seconds * _SLOT_TOLERANCE:
        fault = "more busy slots than there are"
    return fault
