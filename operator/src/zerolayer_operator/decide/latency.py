"""What it costs that requests wait: how much a replica-second of a pool weighs."""

from dataclasses import dataclass
from typing import Final

from zerolayer_operator.api.scaling import CostSpec
from zerolayer_operator.observe.first_tokens import Waits

_PER_TARGET: Final = 0.2
"""What a wait as long as the target, beyond the target, adds to the price."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a replica-second of a pool weighs.

    Attributes:
        penalty: The factor; ``None`` where it is not known, and where nobody waited.
        proven: Whether it is known how long requests waited, where that counts: what was saved in any other
            time may have been saved at their expense.
    """

    penalty: float | None = None
    proven: bool = True


UNWEIGHTED: Final = Weight()


def penalty(p99_s: float, target_s: float) -> float:
    """The factor on the price of replica-time, at least 1.

    Args:
        p99_s: 99th percentile of the time to the first token, in seconds.
        target_s: What it should be at most, in seconds; above 0.
    """
    return 1 + _PER_TARGET * max(0.0, (p99_s - target_s) / target_s)


def weight_of(cost: CostSpec | None, waits: Waits | None) -> Weight:
    """The weight of a pool's replica-time.

    Args:
        cost: What its author says of its price.
        waits: How long requests waited; ``None`` where that is not known.
    """
    if cost is None or cost.latency_penalty is None:
        return UNWEIGHTED
    if waits is None:
        return Weight(proven=False)
    if waits.p99_s is None:
        return UNWEIGHTED
    return Weight(penalty(waits.p99_s, cost.latency_penalty.target_s))
