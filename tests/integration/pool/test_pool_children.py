"""Children on a real API server: put back where a hand changed them, left alone where nothing did."""

import json
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import WRITES, AuditLog
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.waiting import wait_for

ROUNDS = 10


def read(pool: Pool, kind: str, name: str = "") -> dict[str, Any]:
    return json.loads(pool.kubectl("-n", pool.namespace, "get", kind, name or pool.name, "-o", "json"))


def patch(pool: Pool, kind: str, name: str, change: Any, how: str = "merge") -> None:
    arguments = ("-n", pool.namespace, "patch", kind, name, f"--type={how}", f"--patch={json.dumps(change)}")
    pool.kubectl(*arguments)


# Kind, suffix of the name, a hand's edit, and the path whose value must come back.
EDITS = [
    ("service", "", {"spec": {"selector": {"zerolayer.dev/revision": "nobody"}}}, "spec.selector"),
    ("service", "-metrics", {"spec": {"publishNotReadyAddresses": False}}, "spec.publishNotReadyAddresses"),
    ("pdb", "", {"spec": {"maxUnavailable": 3}}, "spec.maxUnavailable"),
    ("pdb", "", {"spec": {"unhealthyPodEvictionPolicy": None}}, "spec.unhealthyPodEvictionPolicy"),
    ("networkpolicy", "", {"spec": {"egress": [{}]}}, "spec.egress"),
    ("networkpolicy", "", {"spec": {"ingress": []}}, "spec.ingress"),
    ("serviceaccount", "", {"automountServiceAccountToken": True}, "automountServiceAccountToken"),
    ("hpa", "", {"spec": {"maxReplicas": 50}}, "spec.maxReplicas"),
    ("hpa", "", {"metadata": {"labels": {"zerolayer.dev/pool": None}}}, "metadata.labels"),
]


def at(body: dict[str, Any], path: str) -> Any:
    value: Any = body
    for key in path.split("."):
        value = value.get(key)
    return value


@pytest.fixture
def pool(make_pool, warm) -> Pool:
    made = make_pool(autoscaling={"minReplicas": 1, "maxReplicas": 2})
    warm(made)
    return made


def test_what_a_hand_changed_is_put_back(pool: Pool) -> None:
    for kind, suffix, change, path in EDITS:
        name = pool.name + suffix
        before = at(read(pool, kind, name), path)
        patch(pool, kind, name, change)
        pool.wait(
            lambda kind=kind, name=name, path=path: at(read(pool, kind, name), path),
            lambda value, before=before: value == before,
            what=f"{path} of {kind} {name} to be put back",
            seconds=30,
        )


def test_what_others_own_is_left_alone(pool: Pool) -> None:
    patch(pool, "service", pool.name, {"metadata": {"annotations": {"mesh.example/port": "1"}}})
    patch(pool, "service", pool.name, {"spec": {"sessionAffinity": "ClientIP"}})
    patch(pool, "service", pool.name, {"spec": {"selector": {"zerolayer.dev/revision": "nobody"}}})

    def repaired() -> bool:
        return read(pool, "service")["spec"]["selector"]["zerolayer.dev/revision"] != "nobody"

    pool.wait(repaired, bool, what="the selector to be put back", seconds=30)
    service = read(pool, "service")
    assert service["metadata"]["annotations"]["mesh.example/port"] == "1"
    assert service["spec"]["sessionAffinity"] == "ClientIP"


@pytest.mark.parametrize("kind", ["service", "pdb", "networkpolicy", "serviceaccount", "hpa"])
def test_deleted_child_comes_back(pool: Pool, kind: str) -> None:
    before = read(pool, kind)["metadata"]["uid"]
    pool.kubectl("-n", pool.namespace, "delete", kind, pool.name)

    def again() -> str:
        found = pool.kubectl(
            "-n",
            pool.namespace,
            "get",
            kind,
            pool.name,
            "--ignore-not-found",
            "-o",
            "jsonpath={.metadata.uid}",
        )
        return found.strip()

    pool.wait(again, lambda uid: uid not in ("", before), what=f"another {kind}", seconds=30)


def test_pod_template_edited_by_hand_is_put_back(pool: Pool) -> None:
    (revision,) = pool.deployments()
    name = f"{pool.name}-{revision}"
    before = read(pool, "deployment", name)["spec"]["template"]
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
    patch(pool, "deployment", name, image, "json")

    pool.wait(
        lambda: read(pool, "deployment", name)["spec"]["template"],
        lambda template: template == before,
        what="the template to be put back",
        seconds=30,
    )


def test_object_of_somebody_else_is_not_taken_over(
    api: LocalCluster, make_pool, pools_namespace: str
) -> None:
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "taken", "namespace": pools_namespace},
        "spec": {"selector": {"app": "else"}, "ports": [{"port": 80}]},
    }
    api.kubectl("apply", "--filename=-", stdin=json.dumps(foreign))
    pool = make_pool("taken")

    found = pool.wait_condition("Degraded", "True", reason="NameTaken")

    assert "Service taken" in found["message"]
    assert read(pool, "service")["spec"]["selector"] == {"app": "else"}
    api.kubectl("-n", pools_namespace, "delete", "service", "taken")
    pool.wait(
        lambda: pool.kubectl(
            "-n", pool.namespace, "get", "service", "taken", "--ignore-not-found", "-o", "name"
        ),
        bool,
        what="the pool's own Service",
        seconds=30,
    )


def test_steady_pools_cost_no_write(
    api: LocalCluster, account: Account, operator: OperatorProcess, make_pool, warm
) -> None:
    """Pools with every kind of field, so that nothing the API server rewrites looks like a hand's edit."""
    fixed = make_pool(
        replicas=2,
        worker={
            "device": "cpu",
            "resources": {
                "requests": {"cpu": "1000m", "memory": "1024Mi"},
                "limits": {"cpu": "2.50", "memory": "2048Mi"},
            },
            "env": [{"name": "EMPTY", "value": ""}, {"name": "HOME", "value": "/home"}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "podAffinityTerm": {
                                "topologyKey": "host",
                                "labelSelector": {"matchLabels": {"a": "b"}},
                            },
                        }
                    ]
                }
            },
            "podAnnotations": {"example.org/a": "b"},
        },
        warmup={"prompt": "It costs $(HOME) and $5"},
    )
    scaled = make_pool(autoscaling={"maxReplicas": 3, "scaleUp": {"stabilizationWindowSeconds": 15}})
    warm(fixed, 2)
    warm(scaled)

    def rounds() -> int:
        text = operator.metrics()
        line = next(line for line in text.splitlines() if 'reconciles_total{result="ok"}' in line)
        return int(float(line.rsplit(" ", 1)[-1]))

    settled = rounds() + 6
    wait_for(rounds, until=lambda seen: seen >= settled, what="the pools to settle", seconds=30)
    audit = AuditLog(api.audit_log)
    mark, pools = audit.mark(), 2
    wait_for(rounds, until=lambda seen: seen >= settled + pools * ROUNDS, what="resyncs", seconds=60)
    writes = [
        (call.permission.resource, call.permission.verb, call.name)
        for call in audit.calls(user=account.user, since=mark)
        if call.permission.verb in WRITES and call.permission.resource != "leases"
    ]
    assert [write for write in writes if fixed.name in write[2]] == []
    # Without metrics the autoscaler gives up and tells so in its own status, never in ours.
    assert [write for write in writes if scaled.name in write[2]] == []
