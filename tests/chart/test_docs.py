"""What the documentation says of rights, metrics and alerts is what there is."""

import re
from collections.abc import Callable
from typing import Any

from prometheus_client import REGISTRY

from zerolayer_dev.paths import repo_root
from zerolayer_operator import metrics
from zerolayer_operator.pool_metrics import PoolMetrics


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    text = (repo_root() / "docs" / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_rights(render: Callable[..., list[dict[str, Any]]]) -> None:
    granted: dict[str, set[str]] = {}
    everything = {
        "pools": {"podMonitor": {"enabled": True}},
        "keda": {"enabled": True},
        "gateway": {"enabled": True},
    }
    for item in render(everything):
        if item["kind"] in {"Role", "ClusterRole"} and not re.search(
            "-(view|edit)$", item["metadata"]["name"]
        ):
            for rule in item["rules"]:
                for resource in rule["resources"]:
                    granted.setdefault(resource, set()).update(rule["verbs"])
    told = {
        resource.strip("`"): set(verbs.split(", ")) for resource, verbs, _ in table("operator.md", "Rights")
    }
    assert told == granted


def test_metrics() -> None:
    assert metrics.LEADER is not None
    own = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in (*REGISTRY.collect(), *PoolMetrics().collect())
        if family.name.startswith(("zerolayer_operator_", "anthropic_"))
    }
    assert {name.strip("`") for name, _, _ in table("operator.md", "Metrics")} == own


def test_alerts(render: Callable[..., list[dict[str, Any]]]) -> None:
    objects = render({"metrics": {"prometheusRule": {"enabled": True}}})
    (rules,) = [item for item in objects if item["kind"] == "PrometheusRule"]
    alerts = [
        [f"`{rule['alert']}`", rule["labels"]["severity"]]
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert [row[:2] for row in table("monitoring.md", "Rules")] == alerts
