"""What replica-time costs, for people."""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from zerolayer_operator.api.scaling import CostSpec
from zerolayer_operator.decide.ledger import Ledger

_HOUR_S = 3600
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Bill:
    """What a pool's account comes to, each with its currency.

    Attributes:
        spent: What the pool's own replica-time cost.
        weighted: The same, weighted with the latency penalty; None where nothing was weighted.
        saved: What a fixed window of 300 s would have cost, without a penalty, above the weighted cost of the
            pool; negative if less.
    """

    spent: str
    weighted: str | None
    saved: str


def bill(cost: CostSpec, ledger: Ledger) -> Bill:
    """The account in money."""
    penalty_s = ledger.penalty_s if cost.latency_penalty is not None else None
    return Bill(
        spent=money(cost, ledger.spent_s),
        weighted=None if penalty_s is None else money(cost, ledger.spent_s + penalty_s),
        saved=money(cost, ledger.saved_s - (penalty_s or 0.0)),
    )


def money(cost: CostSpec, replica_seconds: float) -> str:
    """The price of so many replica-seconds, negative ones too: `12.34 EUR`."""
    hours = Decimal(replica_seconds) / _HOUR_S
    amount = (hours * Decimal(str(cost.per_replica_hour))).quantize(_CENT, ROUND_HALF_EVEN)
    # Rounding a small loss gives a zero with a sign.
    return f"{abs(amount) if amount == 0 else amount} {cost.currency}"
