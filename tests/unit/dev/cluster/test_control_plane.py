from pathlib import Path

import pytest

from zerolayer_dev.cluster import binaries, control_plane, launch
from zerolayer_dev.cluster.api import ClusterError
from zerolayer_dev.cluster.layout import Addresses, State
from zerolayer_dev.cluster.plan import Component

ADDRESSES = Addresses.of_slot(2)
PROGRAMS = {name: Path("/bin") / name for name in binaries.CONTROL_PLANE}


@pytest.fixture
def components() -> dict[str, Component]:
    made = control_plane.components(State(Path("/state")), ADDRESSES, PROGRAMS)
    return {component.name: component for component in made}


def flags(component: Component) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in component.command[1:])


def test_nothing_starts_before_what_it_needs(components: dict[str, Component]) -> None:
    assert components["etcd"].needs == ()
    assert components["kube-apiserver"].needs == ("etcd",)
    for name in ("kube-controller-manager", "kube-scheduler"):
        assert components[name].needs == ("kube-apiserver",)


def test_the_api_server_authorises_and_audits(components: dict[str, Component]) -> None:
    given = flags(components["kube-apiserver"])
    assert given["--authorization-mode"] == "Node,RBAC"
    assert given["--audit-log-path"] == "/state/logs/audit.log"
    assert given["--service-cluster-ip-range"] == str(ADDRESSES.services)
    # Who aggregates APIs is recognised by an authority of its own, never by the clients'.
    assert given["--requestheader-client-ca-file"] != given["--client-ca-file"]


def test_requests_are_logged_once_and_probes_not_at_all() -> None:
    policy = control_plane.AUDIT_POLICY
    assert policy["omitStages"] == ["RequestReceived"]
    assert [rule["level"] for rule in policy["rules"]] == ["None", "Metadata"]
    assert "/readyz*" in policy["rules"][0]["nonResourceURLs"]


def test_nobody_ends_because_the_api_server_is_away(components: dict[str, Component]) -> None:
    for name in ("kube-controller-manager", "kube-scheduler"):
        assert flags(components[name])["--leader-elect"] == "false"


def test_the_autoscaler_works_at_the_pace_of_tests(components: dict[str, Component]) -> None:
    given = flags(components["kube-controller-manager"])
    assert given["--horizontal-pod-autoscaler-sync-period"] == "5s"
    assert given["--use-service-account-credentials"] == "true"


def test_a_test_may_set_the_pace_itself(components: dict[str, Component]) -> None:
    own = {"kube-controller-manager": ["--horizontal-pod-autoscaler-sync-period=1s"]}
    changed = {item.name: item for item in launch.with_flags(tuple(components.values()), own)}

    assert flags(changed["kube-controller-manager"])["--horizontal-pod-autoscaler-sync-period"] == "1s"
    assert changed["kube-apiserver"] == components["kube-apiserver"]
    with pytest.raises(ClusterError, match="flags for kubelet, which the cluster does not have"):
        launch.with_flags(tuple(components.values()), {"kubelet": ["--v=4"]})
