"""Single reconciles on a real API server: killed at every write, and what is looked up only once."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from kubernetes.aio.client import ApiClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_operator.observe.hub import UnresolvedError
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "p"
KINDS = "deploy,svc,hpa,pdb,netpol,sa"
MOST_WRITES = 30


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the operator may catch it."""


class MortalClient:
    """A connection that is cut off at one of its writes, before or after the API server got it."""

    def __init__(self, client: ApiClient, writes: int, *, after: bool) -> None:
        self._client = client
        self._left = writes
        self._after = after
        self.configuration = client.configuration

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def call_api(self, method: str, *rest: Any, **named: Any) -> Any:
        if method == "GET":
            return await self._client.call_api(method, *rest, **named)
        last = self._left == 0
        self._left -= 1
        if last and not self._after:
            raise Killed
        answer = await self._client.call_api(method, *rest, **named)
        if last:
            raise Killed
        return answer


class Hub:
    """A hub whose branches a test moves."""

    def __init__(self) -> None:
        self.commit: str | None = COMMIT
        self.asked: list[tuple[str, str, str | None]] = []

    async def __call__(self, repo: str, revision: str, token: str | None) -> str:
        self.asked.append((repo, revision, token))
        if self.commit is None:
            raise UnresolvedError("no such revision; name a commit")
        return self.commit


@pytest.fixture
def operator(client: ApiClient, by_hand) -> Callable[..., Reconciler]:
    def make(through: Any = None, resolve: Any = None, **settings: Any) -> Reconciler:
        values = {"worker_image": "worker:1", "pod_name": "test", **settings}
        return by_hand(through or client, Settings(**values), resolve=resolve)

    return make


@pytest.fixture
def make(apply_pool: Callable[..., None]) -> Callable[..., None]:
    return partial(apply_pool, NAME)


def listed(api: LocalCluster, namespace: str, kinds: str) -> list[dict[str, Any]]:
    return json.loads(api.kubectl("-n", namespace, "get", kinds, "-o", "json"))["items"]


def children(api: LocalCluster, namespace: str) -> set[str]:
    own = [
        item
        for item in listed(api, namespace, KINDS)
        if "zerolayer.dev/pool" in item["metadata"].get("labels", {})
    ]
    return {f"{item['kind']}/{item['metadata']['name']}" for item in own}


def decisions(api: LocalCluster, namespace: str) -> Counter[tuple[str, str]]:
    events = listed(api, namespace, "events")
    ours = [event for event in events if event["involvedObject"]["kind"] == "ZeroLayerPool"]
    return Counter((event["reason"], event["message"]) for event in ours)


def status(api: LocalCluster, namespace: str) -> dict[str, Any]:
    return json.loads(api.kubectl("-n", namespace, "get", "zlp", NAME, "-o", "json")).get("status", {})


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
async def test_killed_at_every_write_it_ends_with_the_same_children_and_events(
    api: LocalCluster, client: ApiClient, namespace: str, operator, make, after: bool
) -> None:
    scaled = {"autoscaling": {"minReplicas": 2, "maxReplicas": 3}}
    make(**scaled)
    for writes in range(MOST_WRITES):
        try:
            await operator(MortalClient(client, writes, after=after)).reconcile(namespace, NAME)
        except Killed:
            continue
        break
    else:
        pytest.fail(f"a reconcile made more than {MOST_WRITES} writes")

    await operator().reconcile(namespace, NAME)
    (deployment,) = listed(api, namespace, "deployments")
    revision = status(api, namespace)["servingRevision"]
    assert children(api, namespace) == {
        f"Deployment/{NAME}-{revision}",
        f"Service/{NAME}",
        f"Service/{NAME}-metrics",
        f"HorizontalPodAutoscaler/{NAME}",
        f"PodDisruptionBudget/{NAME}",
        f"NetworkPolicy/{NAME}",
        f"ServiceAccount/{NAME}",
    }
    assert deployment["spec"]["replicas"] == 2
    told = decisions(api, namespace)
    assert set(told.values()) == {1}
    assert {"RevisionCreated", "CPURequestSet", "AutoscalingStarted"} <= {reason for reason, _ in told}


async def test_nothing_changes_nothing_is_written(client: ApiClient, namespace: str, operator, make) -> None:
    make(replicas=2)
    for _ in range(5):
        await operator().reconcile(namespace, NAME)

    await operator(MortalClient(client, 0, after=False)).reconcile(namespace, NAME)


class TestFrozenInputs:
    async def test_upgrade_with_another_template_and_image_restarts_nothing(
        self, api: LocalCluster, namespace: str, operator, make
    ) -> None:
        make()
        await operator().reconcile(namespace, NAME)
        (before,) = listed(api, namespace, "deployments")

        upgraded = operator(worker_image="worker:2", worker_image_pull_policy="Always")
        await upgraded.reconcile(namespace, NAME)

        (now,) = listed(api, namespace, "deployments")
        assert now["metadata"]["generation"] == before["metadata"]["generation"]
        assert now["spec"]["template"] == before["spec"]["template"]

        make(drainSeconds=60)
        await upgraded.reconcile(namespace, NAME)
        images = {
            (container["image"], container["imagePullPolicy"])
            for item in listed(api, namespace, "deployments")
            for container in item["spec"]["template"]["spec"]["containers"]
        }
        assert images == {("worker:1", "IfNotPresent"), ("worker:2", "Always")}

    async def test_model_revision_is_resolved_once_with_its_token(
        self, api: LocalCluster, namespace: str, operator, make
    ) -> None:
        hub = Hub()
        secret = ("secret", "generic", "hf", "--from-literal=token=s3cret")
        api.kubectl("-n", namespace, "create", *secret)
        reference = {"name": "hf", "key": "token"}
        make(model={"name": "m", "source": {"huggingFace": {"repo": "a/b", "tokenSecretRef": reference}}})
        await operator(resolve=hub).reconcile(namespace, NAME)
        hub.commit = "f" * 40
        for _ in range(3):
            await operator(resolve=hub).reconcile(namespace, NAME)

        assert hub.asked == [("a/b", "main", "s3cret")]
        (deployment,) = listed(api, namespace, "deployments")
        (fetch,) = deployment["spec"]["template"]["spec"]["initContainers"]
        assert f"--revision={COMMIT}" in fetch["args"]
        assert status(api, namespace)["revisions"][0]["modelCommit"] == COMMIT
        assert "s3cret" not in json.dumps(deployment)

    async def test_model_that_cannot_be_resolved_is_told_and_tried_again(
        self, api: LocalCluster, namespace: str, operator, make
    ) -> None:
        hub = Hub()
        hub.commit = None
        make(model={"name": "m", "source": {"huggingFace": {"repo": "a/b"}}})
        await operator(resolve=hub).reconcile(namespace, NAME)

        degraded = next(item for item in status(api, namespace)["conditions"] if item["type"] == "Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "ModelUnresolved")
        assert "name a commit" in degraded["message"]
        assert children(api, namespace) == set()

        hub.commit = COMMIT
        await operator(resolve=hub).reconcile(namespace, NAME)
        assert len(listed(api, namespace, "deployments")) == 1

    @pytest.mark.parametrize("found", [None, "--from-literal=other=x"], ids=["no Secret", "no such key"])
    async def test_token_that_is_missing_is_named(
        self, api: LocalCluster, namespace: str, operator, make, found: str | None
    ) -> None:
        if found is not None:
            api.kubectl("-n", namespace, "create", "secret", "generic", "hf", found)
        reference = {"name": "hf", "key": "token"}
        make(model={"name": "m", "source": {"huggingFace": {"repo": "a/b", "tokenSecretRef": reference}}})
        await operator(resolve=Hub()).reconcile(namespace, NAME)

        degraded = next(item for item in status(api, namespace)["conditions"] if item["type"] == "Degraded")
        assert "hf" in degraded["message"]
        assert "tokenSecretRef" in degraded["message"]


async def test_host_path_needs_the_installations_consent(
    api: LocalCluster, namespace: str, operator, make
) -> None:
    make(model={"name": "m", "source": {"hostPath": {"path": "/srv/model"}}})
    await operator().reconcile(namespace, NAME)

    told = {item["type"]: item for item in status(api, namespace)["conditions"]}
    assert (told["Degraded"]["status"], told["Degraded"]["reason"]) == ("True", "HostPathNotAllowed")
    assert told["Ready"]["status"] == "False"
    assert "allowHostPath=true" in told["Degraded"]["message"]
    assert children(api, namespace) == set()

    await operator(allow_host_path=True).reconcile(namespace, NAME)
    assert len(listed(api, namespace, "deployments")) == 1


class TestRefused:
    """Requests above limits, twice: the API server tells the two in any order."""

    SPEC: ClassVar[dict[str, Any]] = {
        "worker": {
            "device": "cpu",
            "resources": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        },
        "autoscaling": {"maxReplicas": 2},
    }

    async def test_it_is_written_once(self, api: LocalCluster, namespace: str, operator, make) -> None:
        make(**self.SPEC)
        seen: list[dict[str, Any]] = []
        for _ in range(8):
            await operator().reconcile(namespace, NAME)
            seen.append(status(api, namespace))

        assert all(one == seen[0] for one in seen)
        degraded = next(item for item in seen[0]["conditions"] if item["type"] == "Degraded")
        assert degraded["reason"] == "ChildRefused"
        assert degraded["message"].count("must be less than or equal to") == 2

    async def test_it_is_told_once_though_its_events_are_gone_after_an_hour(
        self, api: LocalCluster, namespace: str, operator, make
    ) -> None:
        make(**self.SPEC)
        await operator().reconcile(namespace, NAME)
        assert {reason for reason, _ in decisions(api, namespace)} == {
            "RevisionCreated",
            "AutoscalingStarted",
            "ChildRefused",
        }
        api.kubectl("-n", namespace, "delete", "events", "--all")

        await operator().reconcile(namespace, NAME)
        assert decisions(api, namespace) == Counter()


async def test_network_policies_go_where_the_installation_makes_none_any_more(
    api: LocalCluster, namespace: str, operator, make
) -> None:
    make()
    await operator().reconcile(namespace, NAME)
    assert f"NetworkPolicy/{NAME}" in children(api, namespace)
    foreign = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "other", "namespace": namespace, "labels": {"zerolayer.dev/pool": NAME}},
        "spec": {"podSelector": {}},
    }
    api.kubectl("apply", "--filename=-", stdin=json.dumps(foreign))

    for _ in range(2):
        await operator(network_policy=False).reconcile(namespace, NAME)
    left = {item["metadata"]["name"] for item in listed(api, namespace, "netpol")}
    told = decisions(api, namespace)
    assert left == {"other"}
    assert told["ChildDeleted", f"NetworkPolicy {NAME} is deleted: nothing asks for it any more"] == 1

    await operator().reconcile(namespace, NAME)
    assert f"NetworkPolicy/{NAME}" in children(api, namespace)


async def test_pool_that_is_gone_is_no_error(namespace: str, operator) -> None:
    await operator().reconcile(namespace, "nobody")


async def test_lost_status_is_found_again(api: LocalCluster, namespace: str, operator, make) -> None:
    make()
    await operator().reconcile(namespace, NAME)
    await operator().reconcile(namespace, NAME)
    before = status(api, namespace)
    drop = [{"op": "remove", "path": "/status"}]
    arguments = ("--subresource=status", "--type=json", f"--patch={json.dumps(drop)}")
    api.kubectl("-n", namespace, "patch", "zlp", NAME, *arguments)
    assert status(api, namespace) == {}

    await operator().reconcile(namespace, NAME)

    after = status(api, namespace)
    assert after["servingRevision"] == before["servingRevision"]
    assert after["revisions"] == before["revisions"]
