"""When a status about a pool's autoscaling is written."""

from typing import Any

import pytest

from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.decide.scaling_status import CAUSE_S, FIGURES_S, is_due
from zerolayer_operator.decide.tuning import FIXED

KNOWN = {"window": "300s", "flatness": "0.10", "why": "flatness 0.10 over 20m", "utilization": 40}
UNKNOWN = {"window": "300s", "why": "worker pool-1 tells nonsense"}
BY_HAND = {"window": "300s", "why": FIXED}


def due(before: dict[str, Any], now: dict[str, Any], since_s: float = 0.0, *, pending: bool = False) -> bool:
    return is_due(ScalingStatus(**before), ScalingStatus(**now), since_s, pending=pending)


@pytest.mark.parametrize(
    ("before", "now", "at_once"),
    [
        pytest.param(KNOWN, KNOWN | {"utilization": 80}, False, id="figures"),
        pytest.param(KNOWN, KNOWN | {"window": "240s"}, True, id="window"),
        pytest.param(KNOWN, KNOWN | {"hold": 3}, True, id="hold"),
        pytest.param(KNOWN, KNOWN | {"why": "an update is on its way"}, True, id="why"),
        pytest.param(KNOWN, UNKNOWN, True, id="unknown"),
        pytest.param(UNKNOWN, KNOWN, True, id="known"),
        pytest.param(UNKNOWN, UNKNOWN | {"why": "worker pool-2 tells nonsense"}, False, id="other words"),
        pytest.param(UNKNOWN, UNKNOWN | {"why": "no worker is ready"}, False, id="other cause"),
        pytest.param(UNKNOWN, BY_HAND, True, id="fixed from now on"),
        pytest.param(BY_HAND, UNKNOWN, True, id="by the load from now on"),
        pytest.param(BY_HAND, BY_HAND | {"utilization": 80}, False, id="figures beside a fixed window"),
    ],
)
def test_what_is_written_at_once(before: dict[str, Any], now: dict[str, Any], at_once: bool) -> None:
    assert due(before, now) == at_once
    assert due(before, now, FIGURES_S)


def test_another_cause_in_a_minute() -> None:
    cause, words = (UNKNOWN | {"why": f"{why} tells nonsense"} for why in ("Prometheus", "worker pool-2"))
    assert [due(UNKNOWN, cause, since) for since in (CAUSE_S - 1, CAUSE_S)] == [False, True]
    assert not due(UNKNOWN, words, FIGURES_S - 1)


@pytest.mark.parametrize(
    ("before", "now", "moved"),
    [(40, 50, True), (40, 30, True), (40, 49, False), (None, 1, True), (9, None, True)],
)
def test_quite_another_utilization_in_a_minute(before: int | None, now: int | None, moved: bool) -> None:
    then, later = KNOWN | {"utilization": before}, KNOWN | {"utilization": now}
    assert [due(then, later, since) for since in (CAUSE_S - 1, CAUSE_S)] == [False, moved]


def test_nothing_but_another_mode_before_anybody_has_looked() -> None:
    assert not due(KNOWN, UNKNOWN, FIGURES_S, pending=True)
    assert due(UNKNOWN, BY_HAND, pending=True)
    assert due(BY_HAND, UNKNOWN, pending=True)
