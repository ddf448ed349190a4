"""Which workers Kubernetes' own controllers end when a pool shrinks, and what it costs to tell them."""

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pykube
import pytest
from kubernetes.aio.client import ApiClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube as cluster_objects
from zerolayer_dev.testing import observed
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog, Permission
from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import POD
from zerolayer_operator.apply.deletion_cost import write_costs
from zerolayer_operator.decide.deletion_cost import planned_costs
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.load import Requests
from zerolayer_operator.observe.parse import parse_pod
from zerolayer_operator.observe.state import ObservedPool

POOL, REVISION = "p", "0123456789"
LABELS = names.revision_selector(POOL, REVISION)
COST = names.ANNOTATION_DELETION_COST
PATCH = Permission("", "pods", "patch")


def deployment(size: int) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "w", "image": "w:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.deployment_name(POOL, REVISION)},
        "spec": {"replicas": size, "selector": {"matchLabels": LABELS}, "template": template},
    }


class Workers:
    """One revision's workers, as the real controllers keep them, and the operator's eye on them.

    Args:
        api: where they are.
        client: with the operator's rights.
        namespace: theirs.
    """

    def __init__(self, api: LocalCluster, client: ApiClient, namespace: str) -> None:
        self._api = api
        self._objects = cluster_objects.client(api.kubeconfig)
        self._kube = Kube(client)
        self.namespace = namespace

    def close(self) -> None:
        self._objects.session.close()

    def pods(self) -> dict[str, dict[str, Any]]:
        found = cluster_objects.objects(self._objects, pykube.Pod, namespace=self.namespace, selector=LABELS)
        return {pod["metadata"]["name"]: pod for pod in found}

    def costs(self) -> dict[str, str | None]:
        return {name: pod["metadata"].get("annotations", {}).get(COST) for name, pod in self.pods().items()}

    def start(self, size: int) -> list[str]:
        """Has so many ready workers, and returns their names."""
        self.kubectl("apply", "--filename=-", stdin=json.dumps(deployment(size)))
        wait_for(self.pods, until=lambda pods: len(pods) == size, what=f"{size} pods", seconds=30)
        make_ready(self._api, self._objects, self.namespace, POOL)
        return sorted(self.pods())

    def shrink(self, size: int) -> set[str]:
        """Has so many workers left, and returns the names of those that have gone."""
        before = set(self.pods())
        self.kubectl("scale", f"deployment/{names.deployment_name(POOL, REVISION)}", f"--replicas={size}")
        left = wait_for(self.pods, until=lambda pods: len(pods) == size, what=f"{size} pods", seconds=30)
        return before - set(left)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> None:
        self._api.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    async def look(self) -> ObservedPool:
        found = await self._kube.list(POD, self.namespace, names.selector_string(LABELS))
        pods = tuple(parse_pod(pod) for pod in found)
        return observed.pool(None, namespace=self.namespace, name=POOL, pods=pods)

    async def tell(self, running: dict[str, int], going: int, pool: ObservedPool | None = None) -> int:
        """Writes down which of them go next, and returns how many costs that changed."""
        pool = pool or await self.look()
        requests = {name: Requests(count, 0) for name, count in running.items()}
        changes = planned_costs(pool, REVISION, requests, going)
        await write_costs(self._kube, pool, changes)
        return len(changes)


@pytest.fixture
def account(api: LocalCluster, namespace: str) -> Iterator[Account]:
    made = Account(api, namespace, watch=(namespace,))
    yield made
    made.remove()


@pytest.fixture
async def workers(
    api: LocalCluster,
    namespace: str,
    account: Account,
    client_of: Callable[[Account], Awaitable[ApiClient]],
) -> AsyncIterator[Workers]:
    made = Workers(api, await client_of(account), namespace)
    yield made
    made.close()


async def test_the_idlest_go(workers: Workers) -> None:
    chance = random.Random(4)
    for going in (1, 2, 3):
        running = {name: 2 * place for place, name in enumerate(workers.start(5))}
        if going > 1:
            counts = chance.sample(sorted(running.values()), len(running))
            running = dict(zip(running, counts, strict=True))
        await workers.tell(running, going)
        idlest = sorted(running, key=lambda name: running[name])[:going]
        assert workers.shrink(5 - going) == set(idlest)


async def test_a_cost_that_somebody_else_has_set_stands(workers: Workers) -> None:
    first, second, third, _ = workers.start(4)
    running = {name: 3 * place for place, name in enumerate(sorted(workers.pods()))}
    workers.kubectl("annotate", "pod", first, f"{COST}=100")
    before = await workers.look()
    workers.kubectl("annotate", "pod", second, f"{COST}=7")

    assert await workers.tell(running, 2, before) == 2
    assert (workers.costs()[first], workers.costs()[second], workers.costs()[third]) == ("100", "7", "-9")
    await workers.tell(running, 1)
    workers.kubectl("annotate", "--overwrite", "pod", third, f"{COST}=8")
    await workers.tell(running, 0)
    assert workers.costs()[third] == "8"
    assert workers.shrink(2).isdisjoint({first, third})


async def test_nothing_is_written_without_need_and_nothing_is_left(
    api: LocalCluster, workers: Workers, account: Account
) -> None:
    idle, busy, _ = workers.start(3)
    running = dict.fromkeys(workers.pods(), 6) | {idle: 2, busy: 3}
    log = AuditLog(api.audit_log)
    mark = log.mark()

    def writes() -> list[int]:
        return [call.code for call in log.calls(user=account.user, since=mark) if call.permission == PATCH]

    assert await workers.tell(running, 1) == 1
    for going in (1, 0, 1):
        assert await workers.tell(running | {idle: 4}, going) == 0
    assert await workers.tell(running | {idle: 5}, 1) == 2
    assert await workers.tell(running | {busy: 9}, 0) == 1

    assert set(workers.costs().values()) == {None}
    writers = {
        entry["manager"] for pod in workers.pods().values() for entry in pod["metadata"]["managedFields"]
    }
    assert names.FIELD_MANAGER not in writers
    wait_for(writes, until=lambda codes: codes == [200] * 4, what="four writes in the log", seconds=10)


async def test_a_worker_that_has_gone_is_not_made_again(workers: Workers) -> None:
    workers.start(2)
    before = await workers.look()
    assert workers.shrink(1)
    running = dict.fromkeys((pod.name for pod in before.pods), 0)

    assert await workers.tell(running, 2, before) == 2
    assert len(workers.pods()) == 1
