"""What replica-time costs, for people."""

from decimal import ROUND_HALF_EVEN, Decimal

from zerolayer_operator.api.scaling import CostSpec

_HOUR_S = 3600
_CENT = Decimal("0.01")


def money(cost: CostSpec, replica_seconds: float) -> str:
    """The price of so many replica-seconds, negative ones too: `12.34 EUR`."""
    hours = Decimal(replica_seconds) / _HOUR_S
    amount = (hours * Decimal(str(cost.per_replica_hour))).quantize(_CENT, ROUND_HALF_EVEN)
    # Rounding a small loss gives a zero with a sign.
    return f"{abs(amount) if amount == 0 else amount} {cost.currency}"
