"""A pool's life on a real API server: paused, mistaken, repaired, deleted."""

import json

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.pools import Pool, names


def source(**kind: object) -> dict[str, object]:
    return {"name": "m", "source": kind}


def present(pool: Pool, kinds: str) -> list[str]:
    listed = pool.kubectl(
        "-n", pool.namespace, "get", kinds, "-l", f"zerolayer.dev/pool={pool.name}", "-o", "name"
    )
    return listed.split()


def test_paused_pool_is_left_alone_but_reported(make_pool, warm) -> None:
    pool = make_pool()
    warm(pool)
    before = {name: body["metadata"]["resourceVersion"] for name, body in pool.deployments().items()}

    pool.change(paused=True)
    pool.wait(lambda: pool.status["phase"], lambda phase: phase == "Paused", what="Paused", seconds=30)
    pool.change(drainSeconds=20, replicas=3)
    pool.wait(
        lambda: pool.manifest,
        lambda body: body["status"]["observedGeneration"] == body["metadata"]["generation"],
        what="the change to be seen",
        seconds=30,
    )
    assert {n: body["metadata"]["resourceVersion"] for n, body in pool.deployments().items()} == before
    pool.kubectl("-n", pool.namespace, "delete", "pdb", pool.name)

    pool.change(paused=False)
    pool.wait(pool.deployments, lambda found: len(found) == 2, what="another revision", seconds=30)
    pool.wait(lambda: present(pool, "pdb"), bool, what="the budget", seconds=30)
    warm(pool, 3)


def test_pool_never_carries_a_finalizer_or_annotation_of_ours_and_its_children_go_with_it(
    make_pool, warm
) -> None:
    pool = make_pool(autoscaling={"maxReplicas": 2})
    warm(pool)
    metadata = pool.manifest["metadata"]
    assert "finalizers" not in metadata
    assert set(metadata.get("annotations", {})) == {"kubectl.kubernetes.io/last-applied-configuration"}

    pool.delete()

    kinds = "deploy,rs,pod,svc,hpa,pdb,netpol,sa"
    pool.wait(lambda: present(pool, kinds), lambda found: not found, what="no children", seconds=60)


def test_pool_that_is_made_anew_waits_for_what_the_last_one_left(api: LocalCluster, make_pool, warm) -> None:
    """A finalizer of somebody else's holds up the garbage collector, so that the pool finds its Service."""
    last = make_pool()
    warm(last)
    held = ("-n", last.namespace, "patch", "service", last.name, "--type=merge")
    api.kubectl(*held, '--patch={"metadata": {"finalizers": ["test.example/held"]}}')
    last.delete()
    pool = make_pool(last.name)
    uid = pool.manifest["metadata"]["uid"]

    found = pool.wait_condition("Progressing", "True", reason="WaitingForGarbageCollector")
    assert f"Service {pool.name} of an earlier pool" in found["message"]
    assert pool.condition("Degraded")["reason"] != "NameTaken"
    api.kubectl(*held, '--patch={"metadata": {"finalizers": null}}')
    warm(pool)

    told = [event for event in pool.events() if event["involvedObject"]["uid"] == uid]
    assert {event["type"] for event in told if event["reason"] != "Unschedulable"} == {"Normal"}


def test_missing_secret_is_named_and_its_arrival_noticed(api: LocalCluster, make_pool, warm) -> None:
    pool = make_pool(apiKeySecretRef={"name": "late-keys"})
    found = pool.wait_condition("Degraded", "True", reason="SecretNotFound")
    assert "spec.apiKeySecretRef.name names Secret late-keys" in found["message"]
    assert "create it" in found["message"]
    assert pool.status["phase"] == "Degraded"

    api.kubectl("-n", pool.namespace, "create", "secret", "generic", "late-keys", "--from-literal=a=b")
    warm(pool)

    reasons = [event["reason"] for event in pool.events()]
    assert reasons.count("SecretNotFound") == reasons.count("Recovered") == 1


def test_missing_claim_is_named(make_pool) -> None:
    pool = make_pool(model=source(persistentVolumeClaim={"claimName": "nowhere"}))

    found = pool.wait_condition("Ready", "False", reason="PersistentVolumeClaimNotFound")

    assert "nowhere" in found["message"]


def test_spec_that_kubernetes_refuses_as_a_pod_is_explained(make_pool) -> None:
    limits = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    pool = make_pool(worker={"device": "cpu", "resources": limits})

    found = pool.wait_condition("Degraded", "True", reason="ChildRefused")

    assert "Deployment" in found["message"]
    assert "must be less than or equal to cpu limit" in found["message"]


def test_first_revision_that_never_worked_makes_room_for_its_repair(make_pool, warm) -> None:
    pool = make_pool(drainSeconds=20)
    pool.wait(pool.deployments, bool, what="a Deployment", seconds=30)
    broken = set(pool.deployments())

    pool.change(drainSeconds=25)
    warm(pool)

    assert set(pool.deployments()).isdisjoint(broken)


def test_cpu_request_is_set_and_said_where_the_user_sets_none(make_pool) -> None:
    pool = make_pool(worker={"device": "cpu"})
    pool.wait(lambda: names(pool.pods()), bool, what="a pod", seconds=30)

    (pod,) = pool.pods()
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}
    assert "CPURequestSet" in [event["reason"] for event in pool.events()]


def test_gpu_pool_asks_for_accelerators(make_pool) -> None:
    pool = make_pool(worker={"device": "gpu", "resourceName": "example.com/gpu", "count": 2})
    found = pool.wait_condition("Degraded", "True", reason="Unschedulable", seconds=30)

    (pod,) = pool.pods()
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"example.com/gpu": "2"}
    assert "add a node" in found["message"]


def test_restricted_namespace_admits_the_pods(api: LocalCluster, make_pool, pools_namespace: str) -> None:
    pool = make_pool(
        apiKeySecretRef={"name": "k"}, model=source(huggingFace={"repo": "a/b", "revision": "0" * 40})
    )
    pool.wait(lambda: names(pool.pods()), bool, what="a pod", seconds=30)
    (pod,) = pool.pods()
    strict = f"{pools_namespace}-strict"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": strict, "labels": labels}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "w", "namespace": strict}}
    everything = {"apiVersion": "v1", "kind": "List", "items": [namespace, account]}
    api.kubectl("apply", "--filename=-", stdin=json.dumps(everything))
    copy = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "copy", "namespace": strict},
        "spec": {**pod["spec"], "serviceAccountName": "w", "serviceAccount": "w"},
    }
    answer = api.kubectl("create", "--filename=-", "--dry-run=server", stdin=json.dumps(copy))
    api.kubectl("delete", "namespace", strict, "--wait=false")

    assert "pod/copy created" in answer
