"""What the status says of a pool's autoscaling, and how often it says so."""

from datetime import datetime
from typing import Final

from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.decide.tuning import FIXED, Tuning
from zerolayer_operator.decide.wire import fitting, wire_time
from zerolayer_operator.observe.wording import same_words

FIGURES_S: Final = 300.0
"""Seconds between two writes of a status in which nothing but measured figures differ."""

CAUSE_S: Final = 60.0
"""The same where the load is unknown for another cause than before, or utilization is quite another: both may
go back and forth at every look."""

MOVED: Final = 10
"""Points of utilization that a status is not left behind by for longer."""

_MS: Final = 1000


def scaling_status(
    tuning: Tuning, figures: Figures, before: ScalingStatus | None, now: datetime
) -> ScalingStatus:
    """The status as of now.

    Args:
        tuning: What the load asks of the autoscaler.
        figures: The same as figures.
        before: The status as last written.
        now: The time.
    """
    window = f"{figures.window_s}s"
    stands = before is not None and (before.window, before.hold) == (window, figures.hold)
    return ScalingStatus(
        window=window,
        hold=figures.hold,
        flatness=None if figures.flatness is None else f"{figures.flatness:.2f}",
        utilization=None if figures.utilization is None else round(figures.utilization * 100),
        why=fitting(tuning.why),
        last_change=before.last_change if before is not None and stands else wire_time(now),
        regrets=figures.regrets,
        replica_seconds_saved=round(figures.saved_s),
        # Without a price nobody needs it, and a status that grows is written every five minutes.
        replica_seconds_spent=None if figures.spent is None else round(figures.spent_s),
        replica_seconds_penalty=None if figures.penalty_s is None else round(figures.penalty_s),
        first_token_p99=None if figures.first_token_p99_s is None else _duration(figures.first_token_p99_s),
        latency_penalty=None if figures.latency_penalty is None else f"{figures.latency_penalty:.2f}",
        spent=figures.spent,
        spent_weighted=figures.weighted,
        saved=figures.saved,
    )


def _duration(seconds: float) -> str:
    milliseconds = round(seconds * _MS)
    return f"{seconds:.3g}s" if milliseconds >= _MS else f"{milliseconds}ms"


def is_due(before: ScalingStatus, now: ScalingStatus, since_s: float, *, pending: bool) -> bool:
    """Whether a status is to be written.

    Args:
        before: The status as last written.
        now: The status as of now.
        since_s: Seconds since that was written.
        pending: Whether the load is unknown only because nobody has looked for long enough yet.
    """
    if FIXED in (before.why, now.why) and before.why != now.why:
        return True
    if pending:
        return False
    if since_s >= FIGURES_S or _is_news(before, now):
        return True
    if since_s < CAUSE_S:
        return False
    return not same_words(before.why or "", now.why or "") or _moved(before.utilization, now.utilization)


def _moved(before: int | None, now: int | None) -> bool:
    if before is None or now is None:
        return before != now
    return abs(now - before) >= MOVED


def _is_news(before: ScalingStatus, now: ScalingStatus) -> bool:
    """Whether a status says more than that the figures have moved on."""
    if (before.window, before.hold) != (now.window, now.hold):
        return True
    if (before.flatness is None) != (now.flatness is None):
        return True
    # Why it is unknown may be put otherwise at every look.
    return before.why != now.why and now.flatness is not None
