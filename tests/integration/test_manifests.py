"""What users apply is accepted by a real API server: the examples, and the chart in all its shapes."""

import json
from pathlib import Path

import pytest
import yaml

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.waiting import wait_for

EXAMPLES = sorted((repo_root() / "examples").glob("*.yaml"))
READ = {"get", "list", "watch"}
MONITORING = {"PodMonitor", "PrometheusRule"}
"""Their definitions come with the Prometheus operator."""
WRITE = {"create", "update", "patch", "delete", "deletecollection"}
SHAPES = sorted((repo_root() / "tests" / "chart" / "values").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_accepted(api: LocalCluster, namespace: str, path: Path) -> None:
    said = api.kubectl(
        "-n", namespace, "apply", "--dry-run=server", "--validate=strict", f"--filename={path}", "-o", "name"
    )
    assert said.strip().startswith("zerolayerpool.zerolayer.dev/")


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_rendered_chart_is_accepted(api: LocalCluster, namespace: str, path: Path) -> None:
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    if values.get("watchNamespaces"):
        values["watchNamespaces"] = [namespace]
    rendered = api.helm(
        "template", "zerolayer", str(repo_root() / "charts" / "zerolayer"),
        f"--namespace={namespace}", "--values=-", stdin=json.dumps(values),
    )  # fmt: skip
    objects = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] not in MONITORING]
    said = api.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict",
        "--filename=-", "-o", "name", stdin=yaml.safe_dump_all(objects),
    )  # fmt: skip
    assert len(said.split()) == len(objects)


def test_pool_users_get_their_rights_through_view_and_edit(api: LocalCluster, namespace: str) -> None:
    rendered = api.helm(
        "template", f"users-{namespace}", str(repo_root() / "charts" / "zerolayer"),
        "--show-only=templates/rbac-users.yaml",
    )  # fmt: skip
    api.kubectl("apply", "--filename=-", stdin=rendered)
    try:
        for role, verbs in (("view", READ), ("edit", READ | WRITE)):
            user = f"{role}er"
            api.kubectl(
                "-n", namespace, "create", "rolebinding", role, f"--clusterrole={role}", f"--user={user}"
            )
            wait_for(
                lambda user=user: rights(api, namespace, user),
                until=lambda seen, verbs=verbs: seen == verbs,
                what=f"the aggregated rights of {role}",
                seconds=30,
            )
    finally:
        api.kubectl("delete", "--filename=-", stdin=rendered)


def rights(api: LocalCluster, namespace: str, user: str) -> set[str]:
    """The verbs that a user has on pools."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    answer = json.loads(
        api.kubectl(
            "create",
            f"--as={user}",
            "--validate=false",
            "--filename=-",
            "-o",
            "json",
            stdin=json.dumps(review),
        )
    )
    return {
        verb
        for rule in answer["status"]["resourceRules"]
        if "zerolayerpools" in rule["resources"]
        for verb in rule["verbs"]
    }
