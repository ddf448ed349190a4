"""The suite's own API server is a real one: its controllers act, its audit log tells who did what."""

import json
import signal
from collections.abc import Iterator

import pytest
from kubernetes.aio.client import ApiClient, AppsV1Api, AutoscalingV2Api

from zerolayer_dev.cluster.commands import CommandError
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.control_planes import control_plane
from zerolayer_dev.testing.waiting import wait_for


@pytest.fixture(scope="module")
def api() -> Iterator[LocalCluster]:
    """A cluster that tests here may break."""
    with control_plane("cluster") as cluster:
        yield cluster


def deployment(name: str) -> str:
    labels = {"app": name}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return json.dumps(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    )


def names(cluster: LocalCluster, namespace: str, kind: str) -> list[str]:
    return cluster.kubectl("-n", namespace, "get", kind, "--output=name").split()


async def test_a_deployment_gets_a_replica_set_and_pods(
    api: LocalCluster, client: ApiClient, namespace: str
) -> None:
    api.kubectl("-n", namespace, "create", "-f", "-", stdin=deployment("web"))
    wait_for(lambda: names(api, namespace, "pods"), what="a pod", seconds=20)

    (replica_set,) = (await AppsV1Api(client).list_namespaced_replica_set(namespace)).items
    assert replica_set.metadata.owner_references[0].name == "web"


async def test_the_hpa_controller_works_at_its_shortened_period(
    api: LocalCluster, client: ApiClient, namespace: str
) -> None:
    api.kubectl("-n", namespace, "create", "-f", "-", stdin=deployment("web"))
    api.kubectl("-n", namespace, "autoscale", "deployment", "web", "--max=3", "--cpu=50%")

    def conditions() -> str:
        return api.kubectl("-n", namespace, "get", "hpa", "web", "--output=jsonpath={.status.conditions}")

    wait_for(conditions, what="the HPA's first look", seconds=20)
    hpa = await AutoscalingV2Api(client).read_namespaced_horizontal_pod_autoscaler("web", namespace)
    reasons = {condition.type: condition.reason for condition in hpa.status.conditions}
    # There is nothing here that measures pods, and the controller has noticed.
    assert reasons["AbleToScale"] == "SucceededGetScale"
    assert reasons["ScalingActive"] == "FailedGetResourceMetric"


def test_the_audit_log_names_caller_and_program_once_per_request(api: LocalCluster, namespace: str) -> None:
    api.kubectl("-n", namespace, "create", "configmap", "mine", "--as=jane", "--as-group=system:masters")

    events = [json.loads(line) for line in api.audit_log.read_text().splitlines()]
    (event,) = [
        event
        for event in events
        if event["verb"] == "create"
        and event["requestURI"].startswith(f"/api/v1/namespaces/{namespace}/configmaps")
        and event.get("impersonatedUser")
    ]
    assert event["user"]["username"] == "kubernetes-admin"
    assert event["impersonatedUser"]["username"] == "jane"
    assert event["userAgent"].startswith("kubectl/")
    assert event["stage"] == "ResponseComplete"
    assert event["level"] == "Metadata"


def test_the_restricted_pod_security_level_is_enforced(api: LocalCluster, namespace: str) -> None:
    api.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")

    with pytest.raises(CommandError, match="violates PodSecurity"):
        api.kubectl("-n", namespace, "run", "root", "--image=none")


def test_the_api_server_can_be_away_and_comes_back_with_everything(api: LocalCluster, namespace: str) -> None:
    api.kubectl("-n", namespace, "create", "configmap", "kept")
    api.stop_apiserver()
    try:
        with pytest.raises(CommandError, match="refused"):
            api.kubectl("get", "namespaces", timeout_s=20)
    finally:
        api.start_apiserver()

    assert "configmap/kept" in names(api, namespace, "configmaps")
    assert api.record.alive


def test_a_killed_component_is_started_again(api: LocalCluster, namespace: str) -> None:
    before = api.control.status()["kube-controller-manager"]["pid"]
    api.kill("kube-controller-manager")

    api.control.wait(
        lambda status: (
            status["kube-controller-manager"]["ready"] and status["kube-controller-manager"]["pid"] != before
        ),
        "the controller manager to come back",
    )
    api.kubectl("-n", namespace, "create", "-f", "-", stdin=deployment("web"))
    wait_for(lambda: names(api, namespace, "replicasets"), what="a replica set", seconds=30)


def test_a_frozen_component_does_nothing_until_it_is_resumed(api: LocalCluster, namespace: str) -> None:
    api.pause("kube-controller-manager")
    try:
        api.kubectl("-n", namespace, "create", "-f", "-", stdin=deployment("web"))
        with pytest.raises(CommandError, match="timed out"):
            api.kubectl("-n", namespace, "wait", "--for=create", "pod", "--selector=app=web", "--timeout=2s")
    finally:
        api.resume("kube-controller-manager")
    wait_for(lambda: names(api, namespace, "pods"), what="a pod", seconds=20)


def test_unknown_components_are_named_with_the_known_ones(api: LocalCluster) -> None:
    with pytest.raises(RuntimeError, match="no component kube-api; there are etcd, kube-apiserver"):
        api.control.signal("kube-api", signal.SIGCONT)
