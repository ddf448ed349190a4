from collections.abc import Callable
from typing import Any

import pytest
import yaml

from zerolayer_dev.paths import repo_root
from zerolayer_operator.api import names
from zerolayer_operator.build.meta import OPS_PORT
from zerolayer_operator.settings import Settings

Object = dict[str, Any]
Render = Callable[..., list[Object]]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def one(objects: list[Object], kind: str, name: str = "zerolayer") -> Object:
    (found,) = [item for item in of_kind(objects, kind) if item["metadata"]["name"] == name]
    return found


def rules(objects: list[Object]) -> list[Object]:
    """Every RBAC rule that the operator itself gets, not what users of pools get."""
    roles = of_kind(objects, "ClusterRole") + of_kind(objects, "Role")
    own = [role for role in roles if not role["metadata"]["name"].endswith(("-view", "-edit"))]
    assert own
    return [rule for role in own for rule in role["rules"]]


def environment(objects: list[Object]) -> dict[str, str | None]:
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def test_every_object_has_a_unique_name_and_the_common_labels(rendered: list[Object]) -> None:
    identities = {
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in rendered
    }
    assert len(identities) == len(rendered)
    for item in rendered:
        if item["kind"] != "CustomResourceDefinition":
            assert item["metadata"]["labels"]["app.kubernetes.io/instance"] == "zerolayer"
            assert item["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_pods_meet_the_restricted_level(rendered: list[Object]) -> None:
    pod = one(rendered, "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all(set(volume) <= {"name", "emptyDir"} for volume in pod["volumes"])
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hostPort" in port or port["containerPort"] < 1024 for port in container["ports"])


def test_rbac_names_everything_it_grants(rendered: list[Object]) -> None:
    for rule in rules(rendered):
        words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not any("*" in word for word in words), rule
        assert "nonResourceURLs" not in rule
        assert not {"impersonate", "escalate", "bind", "deletecollection"} & set(rule["verbs"])


@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        ("secrets", {"get"}),
        ("persistentvolumeclaims", {"get"}),
        ("configmaps", {"get", "create", "patch", "delete"}),
        ("jobs", {"get", "list", "create", "patch", "delete"}),
        ("pods", {"list", "watch", "patch"}),
        ("events", {"create"}),
        ("deployments", {"list", "watch", "create", "patch", "delete"}),
        ("horizontalpodautoscalers", {"get", "list", "watch", "create", "patch", "delete"}),
        ("services", {"get", "list", "watch", "create", "patch", "delete"}),
        ("serviceaccounts", {"get", "list", "watch", "create", "patch"}),
        ("poddisruptionbudgets", {"get", "list", "watch", "create", "patch"}),
        ("zerolayerpools/status", {"patch"}),
        ("deployments/scale", {"patch"}),
        ("leases", {"create", "get", "update"}),
    ],
)
def test_rbac_grants_these_verbs_and_no_others(
    rendered: list[Object], resource: str, verbs: set[str]
) -> None:
    granted = {verb for rule in rules(rendered) if resource in rule["resources"] for verb in rule["verbs"]}
    assert granted == verbs


def test_operator_never_changes_a_pool(rendered: list[Object]) -> None:
    granted = {
        verb for rule in rules(rendered) if "zerolayerpools" in rule["resources"] for verb in rule["verbs"]
    }
    assert granted == {"get", "list", "watch"}


def test_lease_of_this_release_only(rendered: list[Object]) -> None:
    for rule in rules(rendered):
        if "leases" in rule["resources"] and rule["verbs"] != ["create"]:
            assert rule["resourceNames"] == [environment(rendered)["ZEROLAYER_LEASE_NAME"]]
    assert one(rendered, "Role", "zerolayer-lease")["metadata"]["namespace"] == "zerolayer-system"


def test_every_binding_names_a_role_and_the_service_account_of_the_release(rendered: list[Object]) -> None:
    account = one(rendered, "ServiceAccount")["metadata"]
    bindings = of_kind(rendered, "RoleBinding") + of_kind(rendered, "ClusterRoleBinding")
    assert bindings
    for binding in bindings:
        where = binding["metadata"].get("namespace")
        beside = [item for item in rendered if item["metadata"].get("namespace") == where]
        role = one(beside, binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert role["rules"]
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]


def test_watched_namespaces_get_a_role_each_and_no_cluster_role(render: Render) -> None:
    objects = render({"watchNamespaces": ["team-a", "team-b"], "rbac": {"aggregateToDefaultRoles": False}})
    assert of_kind(objects, "ClusterRole") == of_kind(objects, "ClusterRoleBinding") == []
    pools = [role for role in of_kind(objects, "Role") if role["metadata"]["name"] == "zerolayer"]
    assert [role["metadata"]["namespace"] for role in pools] == ["team-a", "team-b"]
    assert pools[0]["rules"] == one(render(), "ClusterRole")["rules"]
    assert environment(objects)["ZEROLAYER_NAMESPACES"] == "team-a,team-b"


def test_selectors_match_the_pods(rendered: list[Object]) -> None:
    deployment = one(rendered, "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"].items()
    selectors = [
        deployment["selector"]["matchLabels"],
        one(rendered, "Service", "zerolayer-metrics")["spec"]["selector"],
    ]
    selectors += [item["spec"]["podSelector"]["matchLabels"] for item in of_kind(rendered, "NetworkPolicy")]
    selectors += [item["spec"]["selector"]["matchLabels"] for item in of_kind(rendered, "PodMonitor")]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels
        assert not {"app.kubernetes.io/version", "helm.sh/chart"} & set(selector), "an upgrade changes these"


def test_ports_agree(rendered: list[Object]) -> None:
    (container,) = one(rendered, "Deployment")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "health": Settings.model_fields["health_port"].default,
        "metrics": Settings.model_fields["metrics_port"].default,
    }
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    (service_port,) = one(rendered, "Service", "zerolayer-metrics")["spec"]["ports"]
    assert service_port["targetPort"] in ports
    for policy in of_kind(rendered, "NetworkPolicy"):
        assert {entry["port"] for rule in policy["spec"]["ingress"] for entry in rule["ports"]} == set(ports)


def test_page_is_reached_from_nowhere_in_the_cluster(rendered: list[Object]) -> None:
    # The API server forwards to the pod's loopback address, past every port and policy.
    page = Settings.model_fields["page_port"].default
    assert f": {page}" not in yaml.safe_dump_all(rendered)


def test_environment_is_what_the_operator_reads(
    rendered: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {f"ZEROLAYER_{name.upper()}" for name in Settings.model_fields}
    found = environment(rendered)
    assert set(found) <= fields
    assert fields - set(found) == {
        "ZEROLAYER_METRICS_PORT",
        "ZEROLAYER_HEALTH_PORT",
        "ZEROLAYER_PAGE_PORT",
        "ZEROLAYER_BIND_HOST",
    }
    for name, value in found.items():
        monkeypatch.setenv(name, value if value is not None else "from-the-pod")
    Settings()


def test_values_reach_the_settings(render: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = render(
        {
            "worker": {"image": "w:2", "imagePullPolicy": "Never", "imageVolumes": False},
            "networkPolicy": {"enabled": False, "prometheusNamespace": "prom"},
            "watchNamespaces": ["a", "b"],
            "huggingFace": {"endpoint": "https://hub.example.org"},
            "registries": ["registry.example.org", "http://localhost:5000"],
            "allowHostPath": True,
            "pools": {"podMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "p"}}},
            "keda": {"enabled": True},
            "gateway": {"enabled": True},
            "prometheus": {"addresses": ["http://prometheus:9090", "https://thanos/a"]},
            "page": {"enabled": False},
            "logLevel": "DEBUG",
            "resyncInterval": 5,
            "canaryInterval": 7,
            "leaseDuration": 20,
        }
    )
    for name, value in environment(objects).items():
        monkeypatch.setenv(name, value if value is not None else "from-the-pod")
    settings = Settings()
    assert settings.model_dump(
        exclude={"pod_name", "pod_namespace", "metrics_port", "health_port", "page_port", "bind_host"}
    ) == {
        "worker_image": "w:2",
        "worker_image_pull_policy": "Never",
        "namespaces": ("a", "b"),
        "hub_endpoint": "https://hub.example.org",
        "lease_name": "zerolayer",
        "lease_duration_s": 20,
        "resync_interval_s": 5,
        "canary_interval_s": 7,
        "network_policy": False,
        "prometheus_namespace": "prom",
        "image_volumes": False,
        "registries": ("registry.example.org", "http://localhost:5000"),
        "allow_host_path": True,
        "pod_monitor": True,
        "pod_monitor_interval": "15s",
        "pod_monitor_labels": {"release": "p"},
        "keda": True,
        "gateway": True,
        "prometheus_addresses": ("http://prometheus:9090", "https://thanos/a"),
        "page": False,
        "log_level": "DEBUG",
    }


def test_one_version_at_a_time_and_no_injected_variables(rendered: list[Object]) -> None:
    spec = one(rendered, "Deployment")["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["template"]["spec"]["enableServiceLinks"] is False
    assert spec["template"]["spec"]["automountServiceAccountToken"] is True


def test_crd_is_the_generated_one_and_is_kept(render: Render) -> None:
    (crd,) = of_kind(render(), "CustomResourceDefinition")
    (source,) = (repo_root() / "crds").glob("*.yaml")
    expected = yaml.safe_load(source.read_text(encoding="utf-8"))
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    try:
        assert crd == expected
    finally:
        crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(
    ("enabled", "verbs"),
    [(True, ["get", "list", "watch", "create", "patch", "delete"]), (False, ["list", "delete"])],
)
def test_network_policies_are_made_or_removed(render: Render, enabled: bool, verbs: list[str]) -> None:
    rendered = render({"networkPolicy": {"enabled": enabled}})

    (rule,) = [rule for rule in rules(rendered) if "networkpolicies" in rule["resources"]]
    assert rule["verbs"] == verbs


def test_pod_monitors_of_pools_are_granted_only_where_they_are_made(render: Render) -> None:
    assert not any("podmonitors" in rule["resources"] for rule in rules(render()))
    monitored = render({"pools": {"podMonitor": {"enabled": True}}})
    (rule,) = [rule for rule in rules(monitored) if "podmonitors" in rule["resources"]]
    assert rule["apiGroups"] == ["monitoring.coreos.com"]
    assert set(rule["verbs"]) == {"get", "create", "patch"}
    assert of_kind(monitored, "PodMonitor") == [], "the operator's own is another switch"


def test_objects_of_keda_are_granted_only_where_they_are_made(render: Render) -> None:
    assert not any("keda.sh" in rule["apiGroups"] for rule in rules(render()))
    (rule,) = [rule for rule in rules(render({"keda": {"enabled": True}})) if "keda.sh" in rule["apiGroups"]]
    assert rule["resources"] == ["scaledobjects", "triggerauthentications"]
    assert set(rule["verbs"]) == {"get", "create", "patch", "delete"}


def test_routes_are_granted_only_where_they_are_made(render: Render) -> None:
    group = "gateway.networking.k8s.io"
    assert not any(group in rule["apiGroups"] for rule in rules(render()))
    (rule,) = [rule for rule in rules(render({"gateway": {"enabled": True}})) if group in rule["apiGroups"]]
    assert rule["resources"] == ["httproutes"]
    assert set(rule["verbs"]) == {"get", "create", "patch", "delete"}


@pytest.mark.parametrize(
    ("endpoint", "ports"),
    [
        ("https://huggingface.co", [443, 8443]),
        ("https://hub.example.org/mirror", [443, 8443]),
        ("http://hub.example.org", [443, 80, 8443]),
        ("http://hub.example.org:8081/mirror", [443, 8081, 8443]),
    ],
)
def test_operator_reaches_the_api_server_and_the_hub(render: Render, endpoint: str, ports: list[int]) -> None:
    values = {"networkPolicy": {"apiServerPorts": [8443, 443]}, "huggingFace": {"endpoint": endpoint}}
    policy = one(render(values), "NetworkPolicy")
    assert [entry["port"] for entry in policy["spec"]["egress"][1]["ports"]] == ports


def test_operator_reaches_the_registries_that_it_may_ask(render: Render) -> None:
    registries = [
        "ghcr.io",
        "registry.example.org:5000",
        "http://plain",
        "http://plain:8080",
        "https://a:444",
    ]
    policy = one(render({"registries": registries}), "NetworkPolicy")
    ports = [entry["port"] for entry in policy["spec"]["egress"][1]["ports"]]
    assert ports == [443, 5000, 80, 8080, 444, 6443]


def test_operator_reaches_prometheus(render: Render) -> None:
    addresses = ["http://prometheus.monitoring:9090", "https://thanos.example.org/a", "http://plain/x"]
    policy = one(render({"prometheus": {"addresses": addresses}}), "NetworkPolicy")
    ports = [entry["port"] for entry in policy["spec"]["egress"][1]["ports"]]
    assert ports == [443, 9090, 80, 6443]


def test_operator_reaches_the_workers_of_every_pool(render: Render) -> None:
    egress = one(render(), "NetworkPolicy")["spec"]["egress"][2]
    assert [entry["port"] for entry in egress["ports"]] == [OPS_PORT]
    (peer,) = egress["to"]
    (labelled,) = peer["podSelector"]["matchExpressions"]
    assert peer["namespaceSelector"] == {}
    assert labelled == {"key": names.LABEL_POOL, "operator": "Exists"}


def test_crd_can_be_left_out(render: Render) -> None:
    assert of_kind(render({"crds": {"install": False}}), "CustomResourceDefinition") == []


def test_optional_kinds_are_made_only_when_asked_for(render: Render) -> None:
    known = {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Deployment",
        "NetworkPolicy",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    }
    assert {item["kind"] for item in render()} == known
    assert {item["kind"] for item in render({"networkPolicy": {"enabled": False}})} == known - {
        "NetworkPolicy"
    }


@pytest.mark.parametrize(
    ("switch", "kind", "name"),
    [
        ("podMonitor", "PodMonitor", "zerolayer"),
        ("prometheusRule", "PrometheusRule", "zerolayer"),
        ("grafanaDashboard", "ConfigMap", "zerolayer-dashboard"),
    ],
)
def test_monitoring_is_made_where_it_is_asked_for(render: Render, switch: str, kind: str, name: str) -> None:
    monitored = render({"metrics": {switch: {"enabled": True, "labels": {"release": "p"}}}})
    assert {item["kind"] for item in monitored} == {item["kind"] for item in render()} | {kind}
    made = one(monitored, kind, name)["metadata"]
    assert made["namespace"] == "zerolayer-system"
    assert made["labels"]["release"] == "p"


def test_series_of_the_operator_keep_the_namespaces_of_their_pools(render: Render) -> None:
    """The namespace of the scraped pod would take the place of a pool's own."""
    monitored = render({"metrics": {"podMonitor": {"enabled": True}}})
    (endpoint,) = one(monitored, "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True


def test_pool_users_get_rights_through_the_clusters_own_roles(render: Render) -> None:
    view, edit = (one(render(), "ClusterRole", f"zerolayer-{name}") for name in ("view", "edit"))
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    written = {resource for rule in edit["rules"] for resource in rule["resources"]}
    assert written == {"zerolayerpools", "zerolayerpools/scale"}, "status is the operator's"


def test_image_defaults_to_the_charts_version(render: Render) -> None:
    def image(values: Object) -> str:
        return one(render(values), "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]

    chart = yaml.safe_load((repo_root() / "charts/zerolayer/Chart.yaml").read_text(encoding="utf-8"))
    assert image({}) == f"zerolayer.dev/operator:{chart['appVersion']}"
    assert image({"image": {"tag": "dev"}}) == "zerolayer.dev/operator:dev"
