import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.sampling.router import RANGES, rise, route, steer

entropies = st.floats(-5, 20)
thetas = st.floats(0.001, 999)


def test_deterministic_is_the_argmax() -> None:
    assert route(Intent.DETERMINISTIC).temperature == 0
    assert Intent.DETERMINISTIC not in RANGES


def test_balanced_lies_between() -> None:
    assert 0 < route(Intent.BALANCED).temperature < route(Intent.CREATIVE).temperature


@pytest.mark.parametrize("intent", Intent)
def test_every_intent_has_at_most_one_filter(intent: Intent) -> None:
    """Two would need the mass of what the first one left, which one walk can't always know."""
    parameters = [route(intent)] + ([steer(intent, 2.0, 3.0)] if intent in RANGES else [])
    assert all((each.top_p < 1) + (each.min_p > 0) <= 1 for each in parameters)


@pytest.mark.parametrize("intent", RANGES)
@given(entropy=entropies, theta=thetas)
def test_parameters_stay_within_the_intents_range(intent: Intent, entropy: float, theta: float) -> None:
    chosen, bounds = steer(intent, entropy, theta), RANGES[intent]
    assert bounds.temperature[0] <= chosen.temperature <= bounds.temperature[1]
    assert bounds.min_p[0] <= chosen.min_p <= bounds.min_p[1]
    assert chosen.top_p == route(intent).top_p


@pytest.mark.parametrize("intent", RANGES)
def test_the_fixed_parameters_lie_in_the_range_too(intent: Intent) -> None:
    bounds, fixed = RANGES[intent], route(intent)
    assert bounds.temperature[0] < fixed.temperature < bounds.temperature[1]
    assert bounds.min_p[0] <= fixed.min_p <= bounds.min_p[1]


@given(low=entropies, high=entropies, theta=thetas)
def test_more_entropy_is_never_colder_nor_cut_more(low: float, high: float, theta: float) -> None:
    low, high = sorted((low, high))
    sure, unsure = (steer(Intent.CREATIVE, entropy, theta) for entropy in (low, high))
    assert sure.temperature <= unsure.temperature
    assert sure.min_p >= unsure.min_p


@pytest.mark.parametrize(("entropy", "expected"), [(-1.0, 0.0), (0.0, 0.0), (2.0, 0.8**1.5), (1e9, 1.0)])
def test_the_curve_is_edts(entropy: float, expected: float) -> None:
    assert rise(entropy, 3.0) == pytest.approx(expected, abs=1e-6)
