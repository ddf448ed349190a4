"""How an autoscaler is set, and what it was fed."""

from typing import Any

import pytest

from zerolayer_dev.testing import observed
from zerolayer_operator.observe.autoscaler import (
    AutoscalerSetting,
    Metric,
    keda_autoscaler,
    last_metric,
    live_setting,
)
from zerolayer_operator.observe.state import ChildKey

HPA = ChildKey("HorizontalPodAutoscaler", "pool")
SCALED = ChildKey("ScaledObject", "pool")
BEHAVIOR = {"scaleDown": {"stabilizationWindowSeconds": 120}}


def advanced(behavior: dict[str, Any]) -> dict[str, Any]:
    return {"horizontalPodAutoscalerConfig": {"behavior": behavior}}


@pytest.mark.parametrize(
    ("key", "body", "expected"),
    [
        (HPA, {"spec": {"minReplicas": 2, "behavior": BEHAVIOR}}, AutoscalerSetting(120, 2)),
        (HPA, {"spec": {"minReplicas": 2}}, AutoscalerSetting(None, 2)),
        (HPA, {}, AutoscalerSetting(None, 0)),
        (SCALED, {"spec": {"minReplicaCount": 3, "advanced": advanced(BEHAVIOR)}}, AutoscalerSetting(120, 3)),
        (SCALED, {"spec": {}}, AutoscalerSetting(None, 0)),
        (ChildKey("HorizontalPodAutoscaler", "other"), {"spec": {"minReplicas": 2}}, None),
    ],
)
def test_live_setting(key: ChildKey, body: dict[str, Any], expected: AutoscalerSetting | None) -> None:
    assert live_setting(observed.pool(observed.spec(), children={key: body})) == expected


def test_autoscaler_of_keda_is_found_by_what_keda_says_or_its_usual_name() -> None:
    assert keda_autoscaler("pool", {}) is None
    assert keda_autoscaler("pool", {SCALED: {}}) == "keda-hpa-pool"
    assert keda_autoscaler("pool", {SCALED: {"status": {"hpaName": "mine"}}}) == "mine"


def hpa(current: Any, target: Any, kind: str = "external", **status: Any) -> dict[str, Any]:
    return {
        "spec": {"metrics": [{kind: {"target": target}}]},
        "status": {
            "currentReplicas": 3,
            "currentMetrics": [{kind: {"current": current}}],
            "conditions": [{"type": "ScalingActive", "status": "True"}],
            **status,
        },
    }


AVERAGE = {"averageValue": "1500m"}
TARGET = {"averageValue": "2"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (hpa(AVERAGE, TARGET), Metric(4500, 2000)),
        (hpa({"averageValue": "1k"}, {"averageValue": "70"}), Metric(3_000_000, 70_000)),
        (
            hpa({"averageUtilization": 50}, {"averageUtilization": 80}, "containerResource"),
            Metric(150_000, 80_000),
        ),
        (hpa({"averageUtilization": 0}, {"averageUtilization": 80}, "resource"), Metric(0, 80_000)),
        (hpa(AVERAGE, TARGET, currentReplicas=0), None),
        (hpa(AVERAGE, TARGET, conditions=[{"type": "ScalingActive", "status": "False"}]), None),
        (hpa(AVERAGE, TARGET, conditions=[]), None),
        (hpa(AVERAGE, TARGET, currentMetrics=[]), None),
        (hpa(AVERAGE, TARGET, currentMetrics=None), None),
        (hpa({}, TARGET), None),
        (hpa(AVERAGE, {"averageValue": "0"}), None),
        (hpa({"averageValue": "many"}, TARGET), None),
        ({}, None),
    ],
)
def test_last_metric(body: dict[str, Any], expected: Metric | None) -> None:
    assert last_metric(body) == expected
