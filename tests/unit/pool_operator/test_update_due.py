"""When a pool is looked at again because of the time alone."""

from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import NOW, spec
from zerolayer_operator.api.update_status import FailedUpdate, Step, UpdateStatus
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.decide.update import RAISE_PATIENCE
from zerolayer_operator.decide.update_due import due_in
from zerolayer_operator.decide.wire import wire_time

SETTINGS = spec(update={"soak": "10m", "maxSoak": "30m", "blueRetention": "5m"})


def ago(**age: float) -> str:
    return wire_time(NOW - timedelta(**age))


def update(step: Step, **changes: Any) -> UpdateStatus:
    values: dict[str, Any] = {"from_revision": "a", "to_revision": "b", "started_at": ago(hours=1)}
    return UpdateStatus(step=step, **{**values, **changes})


def failed(until: str) -> FailedUpdate:
    return FailedUpdate(
        revision="b", settings="s", reason="R", message="m", failed_at=ago(hours=1), retained_until=until
    )


def planned(**fields: Any) -> Plan:
    return Plan(**{"spec": SETTINGS, "wanted": "b", "serving": "a", **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"spec": None, "update": update(Step.SOAK, soak_started_at=ago(minutes=1))}, None),
        ({"update": update(Step.PREPARE)}, None),
        ({"update": update(Step.SOAK)}, None),
        ({"update": update(Step.SOAK, soak_started_at=ago(minutes=1))}, 9 * 60),
        ({"update": update(Step.SOAK, soak_started_at=ago(minutes=10))}, 20 * 60),
        ({"update": update(Step.SOAK, soak_started_at=ago(minutes=12))}, 18 * 60),
        ({"update": update(Step.SOAK, soak_started_at=ago(minutes=30))}, None),
        ({"update": update(Step.AWAIT_PROMOTION, soak_started_at=ago(minutes=1))}, None),
        ({"update": update(Step.PROMOTE, soak_started_at=ago(minutes=1))}, None),
        ({"update": update(Step.RETAIN, switched_at=ago(minutes=1))}, 4 * 60),
        ({"update": update(Step.RETAIN, switched_at=ago(minutes=6))}, None),
        ({"update": update(Step.RETAIN)}, None),
        (
            {"update": update(Step.ROLL_BACK, step_started_at=ago(minutes=1))},
            RAISE_PATIENCE.total_seconds() - 60,
        ),
        ({"update": update(Step.ROLL_BACK)}, None),
        ({"update": update(Step.ROLL_BACK, switched_at=ago(minutes=1))}, None),
        ({"failed": failed(ago(minutes=-3))}, 3 * 60),
        ({"failed": failed(ago(minutes=3))}, None),
        (
            {"failed": failed(ago(minutes=-3)), "update": update(Step.RETAIN, switched_at=ago(minutes=3))},
            2 * 60,
        ),
    ],
)
def test_time_until_a_step_ends(fields: dict[str, Any], expected: float | None) -> None:
    assert due_in(planned(**fields), NOW) == expected


def test_look_that_comes_a_little_early_is_repeated() -> None:
    """The loop's clock and that of the day may differ by some milliseconds."""
    soaking = planned(update=update(Step.SOAK, soak_started_at=ago(minutes=10)))
    assert due_in(soaking, NOW - timedelta(milliseconds=3)) == pytest.approx(0.003)
