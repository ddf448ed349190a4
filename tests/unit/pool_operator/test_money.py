"""Replica-time as money."""

import pytest

from zerolayer_operator.api.scaling import CostSpec
from zerolayer_operator.decide.money import money


@pytest.mark.parametrize(
    ("price", "seconds", "expected"),
    [
        (2.5, 3600, "2.50 EUR"),
        (2.5, -7200, "-5.00 EUR"),
        (0.1, 3 * 3600, "0.30 EUR"),
        (2.5, 0, "0.00 EUR"),
        (2.5, -1, "0.00 EUR"),
        (12, 1_000_000 * 3600.0, "12000000.00 EUR"),
    ],
)
def test_price_of_replica_time(price: float, seconds: float, expected: str) -> None:
    assert money(CostSpec(per_replica_hour=price, currency="EUR"), seconds) == expected
