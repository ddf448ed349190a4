"""Very many autoscaled pools on simulated nodes, with the real operator, API server and autoscalers."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zerolayer_dev.cluster import launch
from zerolayer_dev.cluster.layout import Size
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.control_planes import define_pools, new_namespace
from zerolayer_dev.testing.kwok import PODS_PER_NODE, TIED, Kwok
from zerolayer_dev.testing.metrics_api import register
from zerolayer_dev.testing.operator_cost import Meter, calls, probe_for, samples
from zerolayer_dev.testing.operator_process import OperatorProcess
from zerolayer_dev.testing.pools import cpu_pool
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.build.meta import OPS_PORT

COUNTS = (50, 100, 200, 500, 1000)
POOLS_PER_NAMESPACE = 50
LARGEST = 3
SECONDS = int(os.environ.get("ZEROLAYER_MANY_POOLS_SECONDS", "180"))
SETTLING_SECONDS = 45
# Kubernetes' own limit of 20 calls per second would hold up 100 autoscalers already.
CALLS = ("--kube-api-qps=1000", "--kube-api-burst=1000")
# Nodes that are simulated on a busy machine are late at times; the interval is Kubernetes' own.
MANAGER = (*CALLS, "--horizontal-pod-autoscaler-sync-period=15s", "--node-monitor-grace-period=300s")


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    flags = {"kube-controller-manager": MANAGER, "kube-scheduler": CALLS}
    started = launch.up(f"many-{os.getpid()}", Size.CONTROL_PLANE, tied=True, flags=flags)
    define_pools(started)
    yield started
    started.down()


@pytest.fixture
def nodes(cluster: LocalCluster, tmp_path: Path) -> Iterator[Kwok]:
    """Simulates nodes, and gives the cluster itself every address that a pod may have."""
    cluster.exec_in_node(["ip", "route", "add", "local", str(cluster.addresses.pods), "dev", "lo"])
    kwok = Kwok(cluster, tmp_path)
    kwok.start(max(COUNTS) * LARGEST // PODS_PER_NODE)
    yield kwok
    kwok.stop()


@pytest.fixture
def crowd(cluster: LocalCluster, tmp_path: Path) -> Iterator[None]:
    """Workers' metrics at the addresses of all pods, and an external metrics API that tells the same load."""
    given = {
        "kubeconfig": str(cluster.kubeconfig),
        "host": str(cluster.addresses.node),
        "port": OPS_PORT,
        "folder": str(tmp_path),
    }
    enter = ("nsenter", f"--target={cluster.record.init.pid}", "--net", "--")
    program = (sys.executable, "-m", "zerolayer_dev.testing.crowd", json.dumps(given))
    with (tmp_path / "crowd.log").open("wb") as log:
        process = subprocess.Popen([*TIED, *enter, *program], stdout=subprocess.PIPE, stderr=log)
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        register(cluster, str(cluster.addresses.node), port)
        yield
        process.kill()


@pytest.fixture
def account(cluster: LocalCluster) -> Iterator[Account]:
    with new_namespace(cluster, "operator") as namespace:
        yield Account(cluster, namespace)


@pytest.fixture
def operator(account: Account, tmp_path: Path) -> Iterator[OperatorProcess]:
    """The operator with the chart's settings, but for the Lease: on a busy machine it is late at times."""
    process = OperatorProcess(
        account.kubeconfig(tmp_path / "kubeconfig"),
        tmp_path,
        "operator",
        pod_namespace=account.namespace,
        lease_name=account.name,
        lease_duration_s=120,
    )
    process.start()
    process.wait_role("leading")
    yield process
    process.kill()


def make_pools(cluster: LocalCluster, count: int) -> None:
    for first in range(0, count, POOLS_PER_NAMESPACE):
        namespace = f"pools-{first // POOLS_PER_NAMESPACE}"
        cluster.kubectl("create", "namespace", namespace)
        scaling = {"minReplicas": 1, "maxReplicas": LARGEST, "metric": {"type": "Utilization"}}
        items = [
            cpu_pool(f"pool-{number}", namespace, autoscaling=scaling)
            for number in range(first, min(first + POOLS_PER_NAMESPACE, count))
        ]
        cluster.kubectl(
            "create", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        )


def ready_pools(operator: OperatorProcess) -> float:
    return samples(operator).get(("zerolayer_operator_pools", (("phase", "Ready"),)), 0.0)


def cost(hours: float, before: Meter, after: Meter) -> dict[str, float]:
    """What the time between two looks has cost; the hours are those of all pools together."""
    wait, reconcile, look = (f"zerolayer_operator_{name}_seconds" for name in ("wait", "reconcile", "look"))
    return {
        "reconciles_per_pool_hour": before.growth(after, f"{reconcile}_count") / hours,
        "cpu_s_per_pool_hour": (after.cpu_s - before.cpu_s) / hours,
        "cpu_share": (after.cpu_s - before.cpu_s) / (after.at - before.at),
        "reconcile_p50_ms": 1000 * before.quantile(after, reconcile, 0.5),
        "reconcile_p99_ms": 1000 * before.quantile(after, reconcile, 0.99),
        "decisions_per_pool_hour": before.growth(after, f"{look}_count") / hours,
        "decision_p50_ms": 1000 * before.quantile(after, look, 0.5),
        "decision_p99_ms": 1000 * before.quantile(after, look, 0.99),
        "wait_p50_ms": 1000 * before.quantile(after, wait, 0.5),
        "wait_p99_ms": 1000 * before.quantile(after, wait, 0.99),
    }


@pytest.mark.long
@pytest.mark.promise("many-pools")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", COUNTS)
def test_many_pools(
    count: int,
    cluster: LocalCluster,
    nodes: Kwok,
    crowd: None,
    account: Account,
    operator: OperatorProcess,
    figures: Callable[..., None],
) -> None:
    """All of very many autoscaled pools on simulated nodes are served; what they cost is reported."""
    audit, began = AuditLog(cluster.audit_log), time.monotonic()
    make_pools(cluster, count)
    wait_for(
        lambda: ready_pools(operator),
        until=lambda seen: seen == count,
        what="Ready pools",
        seconds=900,
        interval=2,
    )
    all_ready = time.monotonic() - began
    # Until the pools have the sizes that their load asks for, which they were not made with.
    probe_for(operator, SETTLING_SECONDS)
    before = Meter.read(operator, audit)
    probes = probe_for(operator, SECONDS)
    after = Meter.read(operator, audit)
    hours = count * (after.at - before.at) / 3600
    made = calls(audit, account.user, before.mark)
    figures(
        pools=count,
        seconds_until_all_ready=all_ready,
        resident_mb=operator.resident_bytes() / 1e6,
        **cost(hours, before, after),
        probe_p99_ms=1000 * probes[99 * len(probes) // 100],
        longest_probe_ms=1000 * probes[-1],
        calls_per_pool_hour=made.total() / hours,
    )
    figures(**{f"{what} per pool-hour": made[what] / hours for what in sorted(made)})
    assert before.growth(after, "zerolayer_operator_reconciles_total", result="bug") == 0
    assert operator.records("ERROR", "CRITICAL") == []
