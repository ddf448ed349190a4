"""Replica-time as money."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.api.scaling import CostSpec
from zerolayer_operator.decide.ledger import Ledger
from zerolayer_operator.decide.money import Bill, bill, money


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


@pytest.mark.parametrize(
    ("penalty_s", "weighted", "expected"),
    [
        pytest.param(None, False, Bill("20.00 EUR", None, "4.00 EUR"), id="no penalty asked for"),
        pytest.param(1800, False, Bill("20.00 EUR", None, "4.00 EUR"), id="asked for no more"),
        pytest.param(None, True, Bill("20.00 EUR", None, "4.00 EUR"), id="no wait is known yet"),
        pytest.param(0, True, Bill("20.00 EUR", "20.00 EUR", "4.00 EUR"), id="soon enough"),
        pytest.param(1800, True, Bill("20.00 EUR", "21.00 EUR", "3.00 EUR"), id="late"),
        pytest.param(36000, True, Bill("20.00 EUR", "40.00 EUR", "-16.00 EUR"), id="a window too short"),
    ],
)
def test_waiting_is_taken_off_what_was_saved_and_what_was_paid_stands(
    penalty_s: float | None, weighted: bool, expected: Bill
) -> None:
    cost = {
        "perReplicaHour": 2,
        "currency": "EUR",
        **({"latencyPenalty": {"target": "1s"}} if weighted else {}),
    }
    ledger = Ledger(saved_s=7200, spent_s=36000, penalty_s=penalty_s)
    assert bill(CostSpec.model_validate(cost), ledger) == expected


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_a_fixed_window_would_have_cost_is_weighted_by_nothing(
    saved_s: float, spent_s: float, penalty_s: float
) -> None:
    """What the pool weighs and what it saved come to that, to the cent that each is rounded by."""
    cost = CostSpec.model_validate({"perReplicaHour": 3600, "latencyPenalty": {"target": "1s"}})
    told = bill(cost, Ledger(saved_s=saved_s, spent_s=spent_s, penalty_s=penalty_s))
    weighted, saved = (float(str(text).split()[0]) for text in (told.weighted, told.saved))
    assert weighted + saved == pytest.approx(spent_s + saved_s, abs=0.011)
