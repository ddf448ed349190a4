"""The autoscaler that a plan holds, and what is told where it can't work."""

from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pod, pool, spec
from zerolayer_operator.api import names
from zerolayer_operator.build.children import children
from zerolayer_operator.build.scaling import Setting, autoscaler
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.state import Problem

UTILIZATION = {"type": "Utilization"}
CONCURRENCY = {"type": "Concurrency", "target": 6}


def built(serving: str = "abc", *, window_s: int = 300, floor: int = 1, **fields: Any) -> dict[str, Any]:
    of = spec(autoscaling={"maxReplicas": 9, **fields})
    assert of.autoscaling is not None
    return autoscaler(pool(of), of.autoscaling, serving, Setting(window_s, floor, range_s=120))


def external(name: str, average: str) -> dict[str, Any]:
    selector = {"zerolayer_dev_pool": "pool", "zerolayer_dev_revision": "abc"}
    return {
        "type": "External",
        "external": {
            "metric": {"name": name, "selector": {"matchLabels": selector}},
            "target": {"type": "AverageValue", "averageValue": average},
        },
    }


def cpu(percent: int) -> dict[str, Any]:
    return {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "zerolayer-worker",
            "target": {"type": "Utilization", "averageUtilization": percent},
        },
    }


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ({}, cpu(80)),
        ({"type": "CPU", "target": 60}, cpu(60)),
        (UTILIZATION, external("zero_layer_utilization", "70")),
        ({"type": "Utilization", "target": 50}, external("zero_layer_utilization", "50")),
        (CONCURRENCY, external("zero_layer_concurrency", "6")),
        ({"type": "TokenRate", "target": 2000}, external("zero_layer_token_rate", "2000")),
        ({"type": "PromQL", "target": 3, "query": "sum(up)"}, external("zero_layer_promql", "3")),
    ],
    ids=["absent", "cpu", "utilization by default", "utilization", "concurrency", "token rate", "promql"],
)
def test_metric_of_each_type(metric: dict[str, Any], expected: dict[str, Any]) -> None:
    assert built(metric=metric)["spec"]["metrics"] == [expected]


def test_external_metric_says_what_it_stands_for() -> None:
    annotations = built(metric=UTILIZATION)["metadata"]["annotations"]

    assert 'zerolayer_dev_revision="abc"}[120s]' in annotations[names.ANNOTATION_QUERY]
    assert "annotations" not in built()["metadata"]


def test_window_floor_and_target_come_from_the_plan() -> None:
    made = built("def", window_s=75, floor=4, minReplicas=2)["spec"]

    assert (made["minReplicas"], made["maxReplicas"]) == (4, 9)
    assert made["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 75}}
    assert made["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "pool-def"}


def test_workers_go_one_at_a_time_where_the_window_follows_the_load() -> None:
    of = spec(autoscaling={"maxReplicas": 9, "scaleDown": {"mode": "Flatness", "maxWindow": "4m"}})
    observed = pool(of)
    planned = plan(observed, DEFAULTS, NOW).scaling
    assert planned is not None
    made = {body["kind"]: body for body in children(observed, plan(observed, DEFAULTS, NOW), DEFAULTS)}
    down = made["HorizontalPodAutoscaler"]["spec"]["behavior"]["scaleDown"]

    assert (planned.window_s, planned.one_by_one) == (240, True), "the widest, until the load is known"
    assert down == {
        "stabilizationWindowSeconds": 240,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
    }


def test_scale_up_is_handed_on() -> None:
    rules = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}]}

    assert built(scaleUp=rules)["spec"]["behavior"]["scaleUp"] == rules


def test_fixed_window_and_smallest_size_are_the_users() -> None:
    of = spec(
        autoscaling={"minReplicas": 2, "maxReplicas": 9, "scaleDown": {"mode": "Fixed", "fixedWindow": "2m"}}
    )
    planned = plan(pool(of), DEFAULTS, NOW).scaling

    assert planned is not None
    assert (planned.window_s, planned.floor, planned.problem) == (120, 2, None)


def test_pool_of_a_fixed_size_has_no_setting() -> None:
    assert plan(pool(spec()), DEFAULTS, NOW).scaling is None


class TestWithoutExternalMetrics:
    SCALED = spec(autoscaling={"maxReplicas": 3, "metric": CONCURRENCY})

    def told(self, of=SCALED, **fields: Any) -> dict[str, Any]:
        observed = pool(of, **{"external_metrics": False, **fields})
        status = report(observed, plan(observed, DEFAULTS, NOW), (), NOW)
        return {item.type: item for item in status.conditions or ()}

    def test_it_is_told_with_the_remedy_and_the_pool_serves_on(self) -> None:
        found = self.told(deployments=(deployment(self.SCALED, ready=1),))

        assert (found["Degraded"].status, found["Degraded"].reason) == ("True", "ExternalMetricsMissing")
        assert "external.metrics.k8s.io" in found["Degraded"].message
        assert "have an adapter serve zero_layer_concurrency" in found["Degraded"].message
        assert found["Ready"].status == "True"

    @pytest.mark.parametrize(
        ("of", "present"), [(spec(), False), (spec(autoscaling={"maxReplicas": 3}), False), (SCALED, True)]
    )
    def test_nothing_is_told_where_none_are_needed_or_there_are_some(self, of, present) -> None:
        live = (deployment(of, ready=1),)

        assert self.told(of, external_metrics=present, deployments=live)["Degraded"].status == "False"

    def test_what_keeps_workers_from_serving_comes_first(self) -> None:
        broken = pod(self.SCALED, problem=Problem("ImagePullFailed", "it can't be pulled"))
        found = self.told(deployments=(deployment(self.SCALED),), pods=(broken,))

        assert found["Degraded"].reason == "ImagePullFailed"

    def test_autoscaler_is_made_all_the_same(self) -> None:
        """It works as soon as somebody serves the metric, and keeps the size until then."""
        observed = pool(self.SCALED, external_metrics=False)
        made = children(observed, plan(observed, DEFAULTS, NOW), DEFAULTS)

        assert "HorizontalPodAutoscaler" in {body["kind"] for body in made}
