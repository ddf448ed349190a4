"""The real operator process, with the chart's rights and no others, against a real API server."""

import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import WRITES, AuditLog
from zerolayer_dev.testing.control_planes import control_plane
from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.operator_process import OperatorProcess, replicas
from zerolayer_dev.testing.pools import POOL_LABEL, Pool, cpu_pool
from zerolayer_dev.testing.waiting import wait_for

LEASE_SECONDS = 5
RESYNC_SECONDS = 1
KILLS = 10
OUTAGE_SECONDS = 30
STEADY_ROUNDS = 10
MEMORY_LIMIT = 120 * 1024 * 1024

Start = Callable[..., OperatorProcess]
MakePool = Callable[..., Pool]


@pytest.fixture(scope="module")
def api() -> Iterator[LocalCluster]:
    """A cluster that tests here may break."""
    with control_plane("operator") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def objects(api: LocalCluster) -> Iterator[pykube.HTTPClient]:
    client = kube.client(api.kubeconfig)
    yield client
    client.session.close()


@pytest.fixture
def account(api: LocalCluster, namespace: str) -> Iterator[Account]:
    made = Account(api, namespace, watch=(namespace,))
    yield made
    made.remove()


@pytest.fixture
def start(account: Account, tmp_path: Path) -> Iterator[Start]:
    """Starts replicas that serve the test's namespace alone: `start("name", setting=value)`."""
    timing = {"lease_duration_s": LEASE_SECONDS, "resync_interval_s": RESYNC_SECONDS}
    with replicas(account, tmp_path, **timing) as started:
        yield started


@pytest.fixture
def make_pool(api: LocalCluster, objects: pykube.HTTPClient, namespace: str) -> MakePool:
    """Makes a pool in the test's namespace."""

    def make(name: str, **spec: Any) -> Pool:
        api.kubectl("apply", "--filename=-", stdin=json.dumps(cpu_pool(name, namespace, **spec)))
        return Pool(objects, api.kubectl, namespace, name)

    return make


def wait_ready(api: LocalCluster, pool: Pool) -> None:
    """Plays the kubelet until the pool is Ready.

    After an outage, of this test's or of the one before, the controller manager's watches back off for up to
    a minute.
    """

    def look() -> str:
        make_ready(api, pool.api, pool.namespace, pool.name)
        return pool.status.get("phase", "")

    pool.wait(look, lambda phase: phase == "Ready", what="phase Ready", seconds=180)


def children(pool: Pool) -> dict[str, str]:
    """The pool's children as `kind/name`, with the uid of each; the pool's own name left out."""
    kinds = "deploy,svc,hpa,pdb,netpol,sa"
    listed = pool.kubectl("-n", pool.namespace, "get", kinds, "-l", f"{POOL_LABEL}={pool.name}", "-o", "json")
    return {
        f"{item['kind']}/{item['metadata']['name'].removeprefix(pool.name)}": item["metadata"]["uid"]
        for item in json.loads(listed)["items"]
    }


def decisions(pool: Pool) -> Counter[tuple[str, str]]:
    """How often each decision about the pool was told in an Event."""
    return Counter(
        (event["reason"], event["message"]) for event in pool.events() for _ in range(event.get("count") or 1)
    )


def no_failure(*replicas: OperatorProcess) -> None:
    """Neither errors nor tracebacks were logged, and nothing but records."""
    for replica in replicas:
        assert replica.records("ERROR", "CRITICAL") == []
        assert "Traceback" not in replica.log()


def test_pool_gets_its_children_with_the_rights_of_the_chart(
    api: LocalCluster, account: Account, start: Start, make_pool: MakePool
) -> None:
    operator = start("a")
    pool = make_pool("p")
    wait_ready(api, pool)
    (revision,) = pool.deployments()
    assert set(children(pool)) == {
        f"Deployment/-{revision}",
        "Service/",
        "Service/-metrics",
        "PodDisruptionBudget/",
        "NetworkPolicy/",
        "ServiceAccount/",
    }
    pool.change(autoscaling={"maxReplicas": 2})
    pool.wait(
        lambda: children(pool), lambda found: "HorizontalPodAutoscaler/" in found, what="HPA", seconds=30
    )
    pool.change(autoscaling=None)
    pool.wait(
        lambda: children(pool),
        lambda found: "HorizontalPodAutoscaler/" not in found,
        what="no HPA",
        seconds=30,
    )
    pool.delete()
    assert operator.stop() == 0
    no_failure(operator)
    assert operator.records("WARNING") == []
    denied = [call for call in AuditLog(api.audit_log).calls(user=account.user) if not call.allowed]
    assert denied == []


@pytest.mark.promise("operator-killed")
def test_killed_at_ten_random_moments_it_goes_on_where_it_was(
    api: LocalCluster, start: Start, make_pool: MakePool, figures: Callable[..., None]
) -> None:
    """Killed with SIGKILL at ten random moments, the process leaves the same children, one Event each."""
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    killed = make_pool("killed")
    operator = start("a")
    for _ in range(KILLS):
        with pytest.raises(subprocess.TimeoutExpired):
            # A start takes a second or two, what it does for one new pool about as long.
            operator.process.wait(timeout=moments.uniform(0.8, 3.5))
        operator.kill()
        make_ready(api, killed.api, killed.namespace, killed.name)
        operator.start()
    wait_ready(api, killed)
    after_kills = children(killed)
    untouched = make_pool("untouched")
    wait_ready(api, untouched)
    assert set(after_kills) == set(children(untouched)), f"seed {seed}"
    assert children(killed) == after_kills
    assert set(decisions(killed).values()) == {1}, f"seed {seed}"
    figures(kills=KILLS, children=len(after_kills), events=decisions(killed).total(), seed=seed)
    assert {reason for reason, _ in decisions(untouched)} <= {reason for reason, _ in decisions(killed)}
    no_failure(operator)


@pytest.mark.promise("api-server-gone")
def test_lost_lease_ends_the_process_and_its_next_start_goes_on(
    api: LocalCluster, start: Start, make_pool: MakePool
) -> None:
    """An API server that is away ends the process by its lost Lease; its next start goes on."""
    operator = start("a")
    operator.wait_role("leading")
    pool = make_pool("p")
    pool.wait(pool.deployments, bool, what="a Deployment", seconds=30)
    api.stop_apiserver()
    try:
        assert operator.process.wait(timeout=2 * LEASE_SECONDS) == 3
    finally:
        api.start_apiserver()
    assert [record["message"] for record in operator.records("CRITICAL")] == [
        "the operator ends: the Lease was lost: it was not renewed in time"
    ]
    operator.start()
    wait_ready(api, pool)
    assert set(decisions(pool).values()) == {1}


@pytest.mark.promise("api-server-gone")
def test_api_server_gone_for_half_a_minute_is_survived_where_the_lease_lasts_longer(
    api: LocalCluster, start: Start, make_pool: MakePool
) -> None:
    """With a Lease that lasts longer the process outlives 30 s without the API server and goes on."""
    # Renewed every third of its duration, lost after two thirds: a quarter is surely in between.
    operator = start("a", lease_duration_s=4 * OUTAGE_SECONDS)
    operator.wait_role("leading")
    pool = make_pool("p")
    pool.wait(pool.deployments, bool, what="a Deployment", seconds=30)
    before = children(pool)
    api.stop_apiserver()
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            operator.process.wait(timeout=OUTAGE_SECONDS)
        assert operator.probe("/healthz")[0] == 200, "an API server that is away is no reason to be restarted"
    finally:
        api.start_apiserver()
    wait_ready(api, pool)
    later = make_pool("later")
    wait_ready(api, later)
    assert before.items() <= children(pool).items()
    assert set(decisions(pool).values()) == {1}
    assert operator.running
    assert "Traceback" not in operator.log()


def test_standby_takes_over_from_a_killed_leader_within_the_lease(start: Start) -> None:
    leader = start("leader")
    leader.wait_role("leading")
    standby = start("standby")
    standby.wait_role("standby")
    leader.kill()
    standby.wait_role("leading", seconds=2 * LEASE_SECONDS)
    again = start("leader-again")
    again.wait_role("standby")
    assert standby.probe("/readyz")[1]["role"] == "leading"
    no_failure(standby, again)


def test_standby_takes_over_at_once_from_a_leader_that_was_stopped(
    api: LocalCluster, account: Account, start: Start, make_pool: MakePool
) -> None:
    leader = start("leader", lease_duration_s=60)
    leader.wait_role("leading")
    standby = start("standby", lease_duration_s=LEASE_SECONDS)
    standby.wait_role("standby")
    assert leader.stop() == 0
    holder = json.loads(api.kubectl("-n", account.namespace, "get", "lease", account.name, "-o", "json"))
    assert holder["spec"]["holderIdentity"] in ("", "standby")
    standby.wait_role("leading", seconds=LEASE_SECONDS)
    wait_ready(api, make_pool("p"))
    assert standby.stop() == 0
    no_failure(leader, standby)


def test_steady_pool_costs_no_write_and_little_memory(
    api: LocalCluster, account: Account, start: Start, make_pool: MakePool
) -> None:
    operator = start("a")
    pool = make_pool("p")
    wait_ready(api, pool)

    def rounds() -> float:
        found = re.search(r'reconciles_total\{result="ok"\} (\S+)', operator.metrics())
        return float(found[1]) if found else 0

    audit = AuditLog(api.audit_log)
    settled, mark = rounds() + 2, 0
    wait_for(rounds, until=lambda seen: seen >= settled, what="the pool to settle", seconds=30)
    mark = audit.mark()
    wait_for(rounds, until=lambda seen: seen >= settled + STEADY_ROUNDS, what="resyncs", seconds=60)
    writes = {
        (call.permission.resource, call.permission.verb)
        for call in audit.calls(user=account.user, since=mark)
        if call.permission.verb in WRITES
    }
    assert writes == {("leases", "update")}
    assert operator.resident_bytes() < MEMORY_LIMIT


def test_bad_settings_are_told_in_one_line(account: Account, tmp_path: Path) -> None:
    operator = OperatorProcess(account.kubeconfig(tmp_path / "kubeconfig"), tmp_path, "x", worker_image="")
    operator.start()
    assert operator.process.wait(timeout=20) == 2
    assert operator.log() == "zerolayer-operator: bad settings: ZEROLAYER_WORKER_IMAGE: field required\n"
