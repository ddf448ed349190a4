"""The Lease on a real API server, whose optimistic concurrency the election rests on."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from kubernetes.aio.client import ApiClient

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_operator.lease import Elector, LeaseLostError, LeaseRecord, LeaseUnavailableError, Timing
from zerolayer_operator.lease_store import KubernetesLeaseStore

NAME = "election"
SHORT = Timing(duration_s=3)
EVEN_SECOND = datetime(2026, 1, 1, tzinfo=UTC)

Candidate = Callable[..., Elector]


@pytest.fixture
def store(client: ApiClient, namespace: str) -> KubernetesLeaseStore:
    return KubernetesLeaseStore(client, namespace, NAME)


@pytest.fixture
def candidate(store: KubernetesLeaseStore) -> Candidate:
    return lambda me, timing=SHORT: Elector(store, me, timing)


def record(holder: str, version: str = "") -> LeaseRecord:
    return LeaseRecord(holder, 15, 3, acquired=EVEN_SECOND, renewed=EVEN_SECOND, version=version)


def spec(api: LocalCluster, namespace: str) -> dict[str, object]:
    return json.loads(api.kubectl("-n", namespace, "get", "lease", NAME, "-o", "json"))["spec"]


async def test_what_is_written_is_read_back(store: KubernetesLeaseStore) -> None:
    assert await store.read() is None
    written = await store.write(record("a"))
    assert written is not None
    assert written.version
    # The API server wants microseconds, and a full second has none: it is moved by one.
    moved = EVEN_SECOND + timedelta(microseconds=1)
    assert replace(written, version="") == replace(record("a"), acquired=moved, renewed=moved)
    assert await store.read() == written


async def test_only_the_first_of_two_writers_wins(store: KubernetesLeaseStore) -> None:
    created = await store.write(record("a"))
    assert created is not None
    assert await store.write(record("b")) is None, "it was created meanwhile"
    results = await asyncio.gather(*(store.write(record(holder, created.version)) for holder in "bcdefghi"))
    (winner,) = [result for result in results if result is not None]
    assert (await store.read()) == winner
    assert await store.write(record("x", created.version)) is None, "it was changed meanwhile"


async def test_leader_makes_a_lease_anew_that_was_deleted(
    api: LocalCluster, store: KubernetesLeaseStore, namespace: str
) -> None:
    created = await store.write(record("a"))
    assert created is not None
    api.kubectl("-n", namespace, "delete", "lease", NAME)
    again = await store.write(record("a", created.version))
    assert again is not None
    assert again.version != created.version
    assert await store.write(record("b")) is None, "nobody else can make it any more"


async def test_edited_lease_without_fields_can_be_taken(
    api: LocalCluster, store: KubernetesLeaseStore, candidate: Candidate, namespace: str
) -> None:
    await store.write(record("somebody"))
    patch = [{"op": "replace", "path": "/spec", "value": {"holderIdentity": "somebody"}}]
    api.kubectl("-n", namespace, "patch", "lease", NAME, "--type=json", f"--patch={json.dumps(patch)}")
    await asyncio.wait_for(candidate("b").acquire(), timeout=10)
    assert spec(api, namespace)["holderIdentity"] == "b"


async def test_many_candidates_one_leader(api: LocalCluster, candidate: Candidate, namespace: str) -> None:
    candidates = [candidate(f"c{number}") for number in range(8)]
    waiting = [asyncio.create_task(one.acquire()) for one in candidates]
    done, pending = await asyncio.wait(waiting, timeout=SHORT.retry_s, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 1
    (leader,) = [one for one in candidates if one.leads()]
    holding = asyncio.create_task(leader.hold())
    # As long as it renews, nobody else gets in.
    _, still_pending = await asyncio.wait({holding, *pending}, timeout=2 * SHORT.duration_s)
    assert still_pending == {holding, *pending}
    assert [one for one in candidates if one.leads()] == [leader]
    for task in (holding, *pending):
        task.cancel()
    assert spec(api, namespace)["leaseTransitions"] == 0


async def test_abandoned_lease_is_taken_when_it_ran_out_and_not_before(candidate: Candidate) -> None:
    dead, standby = candidate("dead"), candidate("standby")
    await dead.acquire()
    started = asyncio.get_running_loop().time()
    await standby.acquire()
    waited = asyncio.get_running_loop().time() - started
    assert not dead.leads()
    # Counted from its first look, and looked at every retry_s; the rest is for a busy machine.
    assert SHORT.duration_s <= waited < SHORT.duration_s + SHORT.retry_s + 2
    with pytest.raises(LeaseLostError):
        await dead.hold()


async def test_released_lease_is_free_at_once(
    api: LocalCluster, candidate: Candidate, namespace: str
) -> None:
    first = candidate("first", Timing(duration_s=300))
    await first.acquire()
    await first.release()
    assert spec(api, namespace)["holderIdentity"] == ""
    await asyncio.wait_for(candidate("second").acquire(), timeout=2)
    assert spec(api, namespace)["leaseTransitions"] == 1


async def test_refusal_is_told_without_a_crash(client: ApiClient) -> None:
    store = KubernetesLeaseStore(client, "no-such-namespace", NAME)
    with pytest.raises(LeaseUnavailableError, match="404"):
        await store.write(record("a"))
