"""What it costs that requests wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.api.scaling import CostSpec
from zerolayer_operator.decide.latency import UNWEIGHTED, Weight, penalty, weight_of
from zerolayer_operator.observe.first_tokens import Waits

SECONDS = st.floats(0.005, 600)
WEIGHTED = CostSpec.model_validate({"perReplicaHour": 2, "latencyPenalty": {"target": "500ms"}})


@pytest.mark.parametrize(
    ("p99_s", "target_s", "expected"),
    [
        (0, 1, 1),
        (0.999, 1, 1),
        (1, 1, 1),
        (1.6, 1, 1.12),
        (2, 1, 1.2),
        (6, 1, 2),
        (0.75, 0.5, 1.1),
        (600, 0.5, 240.8),
    ],
)
def test_a_target_more_of_waiting_costs_a_fifth_more(p99_s: float, target_s: float, expected: float) -> None:
    assert penalty(p99_s, target_s) == pytest.approx(expected)


@given(SECONDS, SECONDS, SECONDS)
def test_waiting_longer_never_costs_less_and_never_less_than_the_price(
    shorter: float, longer: float, target: float
) -> None:
    shorter, longer = sorted((shorter, longer))
    assert 1 <= penalty(shorter, target) <= penalty(longer, target)
    assert (penalty(longer, target) == 1) == (longer <= target or longer - target < 1e-12)


@pytest.mark.parametrize(
    ("cost", "waits", "expected"),
    [
        pytest.param(None, None, UNWEIGHTED, id="no price"),
        pytest.param(CostSpec(per_replica_hour=2), None, UNWEIGHTED, id="no penalty asked for"),
        pytest.param(CostSpec(per_replica_hour=2), Waits(9), UNWEIGHTED, id="none asked for, though known"),
        pytest.param(WEIGHTED, None, Weight(None, proven=False), id="not known"),
        pytest.param(WEIGHTED, Waits(None), Weight(None), id="nobody waited"),
        pytest.param(WEIGHTED, Waits(0.2), Weight(1), id="soon enough"),
        pytest.param(WEIGHTED, Waits(1), Weight(1.2), id="late"),
    ],
)
def test_weight_is_one_only_where_requests_are_known_to_be_soon_enough(
    cost: CostSpec | None, waits: Waits | None, expected: Weight
) -> None:
    assert weight_of(cost, waits) == expected
