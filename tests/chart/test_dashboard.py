"""The dashboard as Grafana's sidecar would find it; what its queries answer is shown on a live cluster."""

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

Object = dict[str, Any]
VARIABLES = {"$__rate_interval": "1m", "$namespace": ".+", "$pool": ".+"}


@pytest.fixture(scope="module")
def dashboard(render: Callable[..., list[Object]]) -> Object:
    objects = render({"metrics": {"grafanaDashboard": {"enabled": True}}})
    (found,) = [item for item in objects if item["kind"] == "ConfigMap"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    (text,) = found["data"].values()
    return json.loads(text)


@pytest.fixture(scope="module")
def panels(dashboard: Object) -> list[Object]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def test_label_of_the_sidecar_is_the_users(render: Callable[..., list[Object]]) -> None:
    labels = {"grafana_dashboard": None, "dashboards": "yes"}
    objects = render({"metrics": {"grafanaDashboard": {"enabled": True, "labels": labels}}})
    (found,) = [item for item in objects if item["kind"] == "ConfigMap"]
    assert found["metadata"]["labels"]["dashboards"] == "yes"
    assert "grafana_dashboard" not in found["metadata"]["labels"]


def test_variables_are_the_data_source_namespace_and_pool(dashboard: Object, panels: list[Object]) -> None:
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert names == ["datasource", "namespace", "pool"]
    text = json.dumps(dashboard)
    assert set(re.findall(r"\$\{?(\w+)", text)) == {*names, "__rate_interval", "__all"}
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}


def test_panels_have_numbers_and_places_of_their_own(dashboard: Object, panels: list[Object]) -> None:
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for first, second in combinations((panel["gridPos"] for panel in dashboard["panels"]), 2):
        beside = first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"]
        assert beside or first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"]
    for panel in panels:
        assert panel["description"].endswith("."), panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert references
        assert len(set(references)) == len(references)


def test_legends_name_labels_that_the_query_keeps(panels: list[Object]) -> None:
    for target in (target for panel in panels for target in panel["targets"]):
        kept = re.search(r"by \(([\w, ]+)\)", target["expr"])
        labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert labels <= set(kept[1].split(", ") if kept else ()), target


def test_queries_are_valid(panels: list[Object], promtool: Callable[..., str], tmp_path: Path) -> None:
    """A recording rule takes the same expressions; variables are filled in as Grafana does it."""
    rules: list[Object] = []
    for number, query in enumerate(target["expr"] for panel in panels for target in panel["targets"]):
        filled = query
        for name, value in VARIABLES.items():
            filled = filled.replace(name, value)
        assert "$" not in filled
        rules.append({"record": f"query:{number}", "expr": filled})
    assert len(rules) > 30
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    assert "SUCCESS" in promtool(tmp_path, "check", "rules", path.name)
