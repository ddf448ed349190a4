"""Pools under a load that a test sets: real Prometheus, autoscalers and operator, simulated workers."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.background import in_background
from zerolayer_dev.testing.control_planes import control_plane, new_namespace
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.metrics_adapter import MetricsAdapter
from zerolayer_dev.testing.operator_process import OperatorProcess, replicas
from zerolayer_dev.testing.pools import Pool, cpu_pool
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_node import SimulatedNode

SCRAPE_S = 5
COLD_START_S = 5


@dataclass
class Stage:
    """What a test has.

    Attributes:
        adapter: What feeds the autoscalers.
        folder: For files.
    """

    cluster: LocalCluster
    api: pykube.HTTPClient
    namespace: str
    adapter: MetricsAdapter
    folder: Path
    ending: ExitStack

    def pool(self, name: str, **spec: Any) -> Pool:
        """Makes a pool."""
        manifest = cpu_pool(name, self.namespace, **spec)
        self.cluster.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))
        return Pool(self.api, self.cluster.kubectl, self.namespace, name)

    def autoscale(self, pool: Pool, autoscaling: Manifest, address: str) -> None:
        """Has a pool sized by an autoscaler that is fed from a Prometheus."""
        pool.change(replicas=None, autoscaling={"metric": {"type": "Utilization"}, **autoscaling})
        found = pool.wait(lambda: self.autoscaler(pool), bool, what="an autoscaler", seconds=30)
        self.adapter.follow(found, address)

    def autoscaler(self, pool: Pool) -> Manifest:
        """A pool's autoscaler; empty where there is none."""
        said = pool.kubectl("-n", pool.namespace, "get", "hpa", pool.name, "-o", "json", "--ignore-not-found")
        return json.loads(said) if said.strip() else {}

    def under_load(self, loads: dict[str, SharedLoad]) -> SimulatedNode:
        """Runs the workers of pools, by name, for the rest of the test."""
        node = SimulatedNode(self.cluster, self.namespace, loads, COLD_START_S)
        self.ending.enter_context(in_background(node.serve()))
        return node

    def prometheus(self, node: SimulatedNode, name: str = "prometheus") -> Prometheus:
        """Starts a Prometheus that scrapes the workers."""
        (self.folder / name).mkdir()
        prometheus = Prometheus(self.folder / name)
        self.ending.callback(prometheus.stop)
        prometheus.start({node.target: {}}, f"{SCRAPE_S}s")
        return prometheus


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A control plane of the test's own, without a scheduler: it would say that there is no node."""
    with ExitStack() as ending:
        cluster = ending.enter_context(control_plane("scaling"))
        cluster.control.stop("kube-scheduler")
        api = kube.client(cluster.kubeconfig)
        ending.callback(api.session.close)
        namespace = ending.enter_context(new_namespace(cluster, "scaling"))
        adapter = MetricsAdapter(cluster, tmp_path)
        ending.enter_context(in_background(adapter.serve()))
        yield Stage(cluster, api, namespace, adapter, tmp_path, ending)


@pytest.fixture
def operator(stage: Stage) -> Iterator[Callable[..., OperatorProcess]]:
    """Starts the operator with the chart's rights: `operator(setting=value)`."""
    account = Account(stage.cluster, stage.namespace, watch=(stage.namespace,))
    with replicas(account, stage.folder, pod_monitor_interval="15s") as started:

        def start(**settings: object) -> OperatorProcess:
            process = started("operator", **settings)
            process.wait_role("leading")
            return process

        yield start
    account.remove()
