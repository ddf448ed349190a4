"""Carrying out a plan against an API server that refuses some of it."""

from dataclasses import replace

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pod, pool, spec
from zerolayer_dev.testing.refusing_cluster import Cluster
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.apply.execute import Outcome, carry_out
from zerolayer_operator.build.children import children
from zerolayer_operator.decide.plan import PlannedRevision, plan
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.observe.state import ChildKey, ObservedPool

ONE, OTHER = spec(), spec(drainSeconds=60)
SCALED = spec(autoscaling={"maxReplicas": 3})


async def carried_out(observed: ObservedPool, cluster: Cluster) -> Outcome:
    decided = plan(observed, DEFAULTS, NOW)
    built = children(observed, decided, DEFAULTS)
    return await carry_out(cluster, observed, decided, built)  # type: ignore[arg-type]


async def test_who_goes_first_is_told_before_anything_lets_the_pool_shrink() -> None:
    cluster, worker = Cluster(), pod(SCALED, "a", uid="u")
    observed = pool(SCALED, pods=(worker,))
    decided = replace(plan(observed, DEFAULTS, NOW), costs={"a": -10})
    await carry_out(cluster, observed, decided, children(observed, decided, DEFAULTS))  # type: ignore[arg-type]

    assert cluster.writes[0] == "apply Pod"
    assert "apply HorizontalPodAutoscaler" in cluster.writes


async def test_new_pool_gets_its_children_in_an_order_in_which_nothing_points_at_nothing() -> None:
    cluster = Cluster()
    await carried_out(pool(SCALED), cluster)

    assert cluster.writes == [
        "apply ServiceAccount",
        "apply NetworkPolicy",
        "apply Deployment",
        "scale Deployment",
        "apply Service",
        "apply Service",
        "apply HorizontalPodAutoscaler",
        "apply PodDisruptionBudget",
    ]


async def test_nothing_is_pointed_at_a_deployment_that_was_refused() -> None:
    cluster = Cluster("apply Deployment")
    cold = deployment(ONE)
    observed = pool(OTHER, deployments=(cold,), service_revision=cold.revision)
    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(OTHER)
    outcome = await carried_out(observed, cluster)

    assert [problem.reason for problem in outcome.problems] == ["ChildRefused"]
    assert cluster.writes == ["apply ServiceAccount", "apply NetworkPolicy"]


async def test_refused_repair_of_the_serving_deployment_keeps_the_rest_going() -> None:
    cluster = Cluster("apply Deployment")
    outcome = await carried_out(pool(ONE, deployments=(deployment(ONE, ready=1),)), cluster)

    assert [problem.reason for problem in outcome.problems] == ["ChildRefused"]
    assert cluster.writes.count("apply Service") == 2


@pytest.mark.parametrize("verb", ["scale", "delete"])
async def test_refused_size_or_deletion_becomes_a_problem(verb: str) -> None:
    live = (deployment(ONE, size=2, ready=2), deployment("useless", size=1))
    cluster = Cluster(f"{verb} Deployment", status=403)
    outcome = await carried_out(pool(ONE, deployments=live), cluster)

    assert [problem.reason for problem in outcome.problems] == ["ChildRefused"]
    assert "apply PodDisruptionBudget" in cluster.writes


async def test_api_server_that_fails_is_asked_again() -> None:
    with pytest.raises(ApiServerError):
        await carried_out(pool(ONE), Cluster("apply Service", status=500))


async def test_webhook_that_is_away_is_named() -> None:
    said = 'failed calling webhook "guard.example": connection refused'
    outcome = await carried_out(pool(ONE), Cluster("apply Deployment", status=500, message=said))

    (problem,) = outcome.problems
    assert (problem.reason, problem.quote) == ("WebhookFails", said)
    assert "kubectl get mutatingwebhookconfigurations" in problem.message


async def test_autoscaler_goes_before_sizes_are_set() -> None:
    live = {ChildKey("HorizontalPodAutoscaler", "pool"): {"metadata": {"uid": "u"}}}
    cluster = Cluster()
    await carried_out(pool(ONE, children=live), cluster)

    assert cluster.writes[0] == "delete HorizontalPodAutoscaler"
    assert "scale Deployment" in cluster.writes


async def test_workers_go_after_requests_are_led_elsewhere() -> None:
    cluster, blue, green = Cluster(), deployment(ONE, 3, 3), deployment(OTHER, 3, 3)
    observed = pool(OTHER, deployments=(blue, green), service_revision=green.revision)
    decided = plan(observed, DEFAULTS, NOW)
    revisions = (
        PlannedRevision(blue.revision, blue.frozen, 4, blue),
        PlannedRevision(green.revision, green.frozen, 1, green),
    )
    decided = replace(decided, revisions=revisions, remove=())
    await carry_out(cluster, observed, decided, children(observed, decided, DEFAULTS))  # type: ignore[arg-type]

    sizes = [number for number, write in enumerate(cluster.writes) if write == "scale Deployment"]
    switch = cluster.writes.index("apply Service")
    assert [number < switch for number in sizes] == [True, False]


async def test_what_an_earlier_pool_of_this_name_left_is_waited_for() -> None:
    """Its garbage collector has yet to come round: that is no problem of anybody's."""
    left, taken = ChildKey("Service", "pool"), ChildKey("ServiceAccount", "pool")
    outcome = await carried_out(pool(ONE, leftover=frozenset({left}), foreign=frozenset({taken})), Cluster())

    assert outcome.waiting == [left]
    assert [problem.reason for problem in outcome.problems] == ["NameTaken"]


async def test_nothing_is_pointed_at_the_deployment_of_an_earlier_pool() -> None:
    left = ChildKey("Deployment", deployment(ONE).name)
    cluster = Cluster()
    outcome = await carried_out(pool(ONE, leftover=frozenset({left})), cluster)

    assert (outcome.waiting, outcome.problems) == ([left], [])
    assert cluster.writes == ["apply ServiceAccount", "apply NetworkPolicy"]


class TestImageVolumes:
    OF_IMAGE = spec(model={"name": "m", "source": {"image": {"reference": "m:1"}}})

    async def test_api_server_that_leaves_them_out_gets_no_deployment(self) -> None:
        cluster = Cluster()
        cluster.drops_volumes = True
        outcome = await carried_out(pool(self.OF_IMAGE), cluster)

        (problem,) = outcome.problems
        assert problem.reason == "ChildRefused"
        assert "set worker.imageVolumes=false in the chart's values" in problem.message
        assert "apply Deployment" not in cluster.writes

    async def test_api_server_that_has_them_gets_it(self) -> None:
        cluster = Cluster()
        outcome = await carried_out(pool(self.OF_IMAGE), cluster)

        assert outcome.problems == []
        assert "apply Deployment" in cluster.writes

    @pytest.mark.parametrize(("of", "named"), [(OF_IMAGE, True), (ONE, False)])
    async def test_refused_one_names_the_chart_s_switch(self, of, named) -> None:
        outcome = await carried_out(pool(of), Cluster("apply Deployment"))

        (problem,) = outcome.problems
        assert ("worker.imageVolumes=false" in problem.message) is named
