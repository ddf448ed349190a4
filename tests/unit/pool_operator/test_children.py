"""The other children of a pool, and which of them a plan holds."""

from dataclasses import replace

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.build.children import children
from zerolayer_operator.decide.plan import plan


def built(of, defaults=DEFAULTS, **fields):
    observed = pool(of, **fields)
    return {
        (body["kind"], body["metadata"]["name"]): body
        for body in children(observed, plan(observed, defaults, NOW), defaults)
    }


def test_new_pool_gets_all_children() -> None:
    of = spec(autoscaling={"maxReplicas": 2})
    revision = revision_hash(of)

    assert set(built(of)) == {
        ("ServiceAccount", "pool"),
        ("NetworkPolicy", "pool"),
        ("Deployment", f"pool-{revision}"),
        ("Service", "pool"),
        ("Service", "pool-metrics"),
        ("HorizontalPodAutoscaler", "pool"),
        ("PodDisruptionBudget", "pool"),
    }


def test_switched_off_and_fixed_size_leave_out_policy_and_autoscaler() -> None:
    kinds = {kind for kind, _ in built(spec(), replace(DEFAULTS, network_policy=False))}

    assert kinds.isdisjoint({"NetworkPolicy", "HorizontalPodAutoscaler"})


def test_pool_gets_a_pod_monitor_where_there_can_be_one() -> None:
    defaults = replace(DEFAULTS, pod_monitor_interval="15s", pod_monitor_labels={"release": "p"})
    assert ("PodMonitor", "pool") not in built(spec(), defaults)

    monitor = built(spec(), defaults, monitored=True)["PodMonitor", "pool"]

    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert monitor["spec"] == {
        "selector": {"matchLabels": {"zerolayer.dev/pool": "pool"}},
        "podTargetLabels": ["zerolayer.dev/pool", "zerolayer.dev/revision"],
        "podMetricsEndpoints": [{"port": "ops", "path": "/metrics", "interval": "15s"}],
    }


def test_labels_of_the_installation_never_hide_whose_child_it_is() -> None:
    defaults = replace(DEFAULTS, pod_monitor_labels={"zerolayer.dev/pool": "other"})

    labels = built(spec(), defaults, monitored=True)["PodMonitor", "pool"]["metadata"]["labels"]

    assert labels["zerolayer.dev/pool"] == "pool"


def test_paused_pool_has_nothing_to_apply() -> None:
    assert built(spec(paused=True)) == {}


def test_every_child_is_the_pools_own() -> None:
    for body in built(spec(autoscaling={"maxReplicas": 2}), monitored=True).values():
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("ZeroLayerPool", "uid-pool", True)
        assert body["metadata"]["labels"]["zerolayer.dev/pool"] == "pool"
        assert body["metadata"]["namespace"] == "default"


def test_size_is_never_part_of_the_applied_deployment() -> None:
    of = spec(replicas=5)

    assert "replicas" not in built(of)["Deployment", f"pool-{revision_hash(of)}"]["spec"]


def test_existing_deployment_keeps_its_template() -> None:
    of = spec()
    template = {"metadata": {"labels": {"made": "by an older operator"}}, "spec": {"containers": []}}
    live = deployment(of, template=template)

    made = built(of, replace(DEFAULTS, worker_image="worker:2"), deployments=(live,))

    assert made["Deployment", live.name]["spec"]["template"] == template


def test_service_budget_and_autoscaler_are_about_the_serving_revision() -> None:
    scaling = {"maxReplicas": 3}
    old, new = spec(autoscaling=scaling), spec(autoscaling=scaling, drainSeconds=60)
    made = built(
        new,
        status=PoolStatus(serving_revision=revision_hash(old)),
        service_revision=revision_hash(old),
        deployments=(deployment(old, ready=1), deployment(new)),
    )
    selector = {"zerolayer.dev/pool": "pool", "zerolayer.dev/revision": revision_hash(old)}

    assert made["Service", "pool"]["spec"]["selector"] == selector
    assert made["PodDisruptionBudget", "pool"]["spec"]["selector"]["matchLabels"] == selector
    target = made["HorizontalPodAutoscaler", "pool"]["spec"]["scaleTargetRef"]["name"]
    assert target == f"pool-{revision_hash(old)}"
    assert made["Service", "pool-metrics"]["spec"]["selector"] == {"zerolayer.dev/pool": "pool"}


@pytest.mark.parametrize(
    ("source", "ports"),
    [({"builtin": {"name": "tiny"}}, [53, 53]), ({"huggingFace": {"repo": "a/b"}}, [53, 53, 443])],
)
def test_workers_may_reach_only_what_fetching_needs(source, ports) -> None:
    policy = built(spec(model={"name": "m", "source": source}))["NetworkPolicy", "pool"]["spec"]

    assert [port["port"] for rule in policy["egress"] for port in rule["ports"]] == ports
    assert policy["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        ("http://mirror", 80),
        ("https://mirror", 443),
        ("http://mirror:8088/x", 8088),
        ("https://x:y", 443),
        ("http://[no", 443),
    ],
)
def test_mirror_of_the_hub_may_be_reached_at_its_port(endpoint: str, port: int) -> None:
    worker = {"device": "cpu", "env": [{"name": "HF_ENDPOINT", "value": endpoint}]}
    of = spec(model={"name": "m", "source": {"huggingFace": {"repo": "a/b"}}}, worker=worker)
    policy = built(of, model_commit="c" * 40)["NetworkPolicy", "pool"]["spec"]

    assert policy["egress"][-1]["ports"] == [{"port": port, "protocol": "TCP"}]


def test_operations_port_is_for_operator_and_prometheus() -> None:
    policy = built(spec())["NetworkPolicy", "pool"]["spec"]
    serving, operations = policy["ingress"]

    assert "from" not in serving
    assert [port["port"] for port in serving["ports"]] == [8000]
    assert [port["port"] for port in operations["ports"]] == [8081]
    peers = {
        peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for peer in operations["from"]
    }
    assert peers == {"zerolayer-system", "monitoring"}


@pytest.mark.parametrize(
    ("source", "deadline"),
    [({"builtin": {"name": "t"}}, 720), ({"huggingFace": {"repo": "a/b"}}, 4320)],
    ids=["loads at once", "fetches first"],
)
def test_progress_deadline_lies_beyond_warmup(source, deadline) -> None:
    of = spec(model={"name": "m", "source": source})
    made = built(of, model_commit="c" * 40)["Deployment", f"pool-{revision_hash(of)}"]

    assert made["spec"]["progressDeadlineSeconds"] == deadline


def test_budget_never_holds_back_workers_that_are_not_ready() -> None:
    budget = built(spec(disruption={"maxUnavailable": 0}))["PodDisruptionBudget", "pool"]["spec"]

    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (0, "AlwaysAllow")
