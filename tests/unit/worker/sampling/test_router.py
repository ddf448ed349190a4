import pytest

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.sampling.router import route


def test_deterministic_is_the_argmax() -> None:
    assert route(Intent.DETERMINISTIC).temperature == 0


def test_balanced_lies_between() -> None:
    assert 0 < route(Intent.BALANCED).temperature < route(Intent.CREATIVE).temperature


@pytest.mark.parametrize("intent", Intent)
def test_every_intent_has_at_most_one_filter(intent: Intent) -> None:
    """Two would need the mass of what the first one left, which one walk can't always know."""
    parameters = route(intent)
    assert (parameters.top_p < 1) + (parameters.min_p > 0) <= 1
