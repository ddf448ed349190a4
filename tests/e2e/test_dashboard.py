"""The chart's dashboard and rules on live data: Prometheus scrapes the operator and a pool's workers."""

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import DEMO_MODEL, Pool, cpu_pool
from zerolayer_dev.testing.release import METRICS_PORT, Release, Values
from zerolayer_dev.testing.waiting import wait_for

NAME, KEY = "watched", "a-key"
PROMETHEUS_PORT, WORKER_PORT = 9090, 8081
SPAN_S, STEP_S = 120, 5
DATA_WITHIN_S = 240


def scraped(port: int) -> dict[str, str]:
    """Annotations by which the local cluster's Prometheus finds a pod."""
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}


class Prometheus:
    """The Prometheus of the cluster, as a person at its page uses it."""

    def __init__(self, cluster: Cluster) -> None:
        address = cluster.kubectl(
            "-n", "monitoring", "get", "svc", "prometheus", "-o", "jsonpath={.spec.clusterIP}"
        )
        self._url = f"http://{address}:{PROMETHEUS_PORT}"

    def _get(self, path: str, **parameters: Any) -> Any:
        answer = httpx.get(
            f"{self._url}/api/v1/{path}", params=parameters, timeout=30, trust_env=False
        ).json()
        assert answer["status"] == "success", (parameters, answer)
        return answer["data"]

    def has_data(self, query: str) -> bool:
        """Whether a panel that shows the last two minutes of a query has anything to draw."""
        now = time.time()
        data = self._get("query_range", query=query, start=now - SPAN_S, end=now, step=STEP_S)
        return any(math.isfinite(float(value)) for row in data["result"] for _, value in row["values"])

    def rules(self) -> list[dict[str, Any]]:
        """All rules with their state."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]


@pytest.fixture
def prometheus(cluster: Cluster) -> Iterator[Prometheus]:
    """Prometheus with the chart's rules, until the test is over."""
    rules = (repo_root() / "charts/zerolayer/files/rules.yaml").read_text(encoding="utf-8")
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prometheus-rules", "namespace": "monitoring"},
        "data": {"zerolayer.yaml": rules.replace("RESYNC_OVERDUE", "600")},
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    restart(cluster)
    yield Prometheus(cluster)
    cluster.kubectl("-n", "monitoring", "delete", "configmap", "prometheus-rules")
    restart(cluster)


def restart(cluster: Cluster) -> None:
    """Prometheus reads its rules when it starts."""
    cluster.kubectl("-n", "monitoring", "rollout", "restart", "deployment/prometheus")
    cluster.kubectl("-n", "monitoring", "rollout", "status", "deployment/prometheus", "--timeout=120s")


@pytest.fixture
def monitored(release: Release, chart_values: Values) -> Iterator[Release]:
    """An operator that is scraped and asks Prometheus for the load, and the dashboard beside it."""
    more: Values = {
        "podAnnotations": scraped(METRICS_PORT),
        "prometheus": {"addresses": [f"http://prometheus.monitoring:{PROMETHEUS_PORT}"]},
        "metrics": {"grafanaDashboard": {"enabled": True}},
    }
    release.install(chart_values | more)
    yield release
    release.install(chart_values)


def queries(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Every query of the dashboard that Grafana's sidecar would find, by panel, filled in as by Grafana."""
    found = json.loads(cluster.kubectl("get", "configmaps", "-A", "-l", "grafana_dashboard=1", "-o", "json"))
    (item,) = found["items"]
    (text,) = item["data"].values()
    variables = {"$__rate_interval": "1m", "$namespace": namespace, "$pool": NAME}
    filled: dict[str, str] = {}
    for panel in json.loads(text)["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in variables.items():
                query = query.replace(name, value)
            filled[f"{panel['id']} {panel['title']} {target['refId']}"] = query
    return filled


def make_pool(cluster: Cluster, pool: Callable[..., Pool], namespace: str) -> Pool:
    """A pool whose size follows its load, that has a price, and that refuses clients without the key."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "clients", "namespace": namespace},
        "stringData": {"first": KEY},
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(secret))
    worker = cpu_pool(NAME, namespace)["spec"]["worker"] | {"podAnnotations": scraped(WORKER_PORT)}
    cost = {"perReplicaHour": 2.5, "currency": "EUR", "latencyPenalty": {"target": "500ms"}}
    autoscaling = {"minReplicas": 1, "maxReplicas": 2, "cost": cost}
    return pool(NAME, worker=worker, apiKeySecretRef={"name": "clients"}, autoscaling=autoscaling)


@pytest.mark.long
@pytest.mark.promise("dashboard")
def test_every_query_of_dashboard_and_rules_has_data(
    cluster: Cluster,
    prometheus: Prometheus,
    monitored: Release,
    pool: Callable[..., Pool],
    namespace: str,
    figures: Callable[..., None],
) -> None:
    """With a pool under load, every query of the Grafana dashboard and every recording rule returns data."""
    watched = make_pool(cluster, pool, namespace)
    watched.wait_ready(1)
    panels = queries(cluster, namespace)
    began = time.monotonic()
    with Load(
        watched.url, model=DEMO_MODEL, clients=[Client(streams=True, keeps_alive=True)], key=KEY
    ) as load:
        refused = httpx.post(f"{watched.url}/v1/messages", json={}, trust_env=False)
        wait_for(
            lambda: [name for name, query in panels.items() if not prometheus.has_data(query)],
            until=lambda empty: not empty,
            what="every panel to have data",
            seconds=DATA_WITHIN_S,
            interval=5,
        )
        rules = prometheus.rules()
        recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
        alerts = {rule["name"]: rule for rule in rules if rule["type"] == "alerting"}
        wait_for(
            lambda: [name for name in recorded if not prometheus.has_data(name)],
            until=lambda empty: not empty,
            what="every recording rule to have data",
            seconds=60,
        )
    figures(
        queries=len(panels),
        recorded=len(recorded),
        alerts=len(alerts),
        active=[name for name, rule in alerts.items() if rule["state"] != "inactive"],
        all_after_s=time.monotonic() - began,
        requests=len(load.attempts),
    )

    assert refused.status_code == httpx.codes.UNAUTHORIZED
    assert load.failures == []
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []
    assert [name for name, rule in alerts.items() if rule["state"] == "firing"] == []
