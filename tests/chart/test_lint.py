import json
import re
from pathlib import Path

import pytest
import yaml

VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_helm_lint_finds_nothing(helm, values: Path) -> None:
    done = helm("lint", "--strict", str(helm.chart), f"--values={values}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_notes_name_the_next_three_commands(helm) -> None:
    done = helm(
        "install",
        "zerolayer",
        str(helm.chart),
        "--namespace=zs",
        "--dry-run=client",
        "--values=-",
        stdin="{}",
    )
    assert done.returncode == 0, done.stderr
    notes = done.stdout.split("NOTES:")[1]
    commands = [line.strip() for line in notes.splitlines() if line.strip().startswith("kubectl ")]
    assert commands == [
        "kubectl --namespace zs rollout status deployment/zerolayer",
        "kubectl apply -f - <<EOF",
        "kubectl get zerolayerpools --watch",
        "kubectl --namespace zs port-forward deployment/zerolayer 8082",
    ]


def test_notes_tell_of_no_page_where_there_is_none(helm) -> None:
    done = helm("install", "zerolayer", str(helm.chart), "--dry-run=client", "--set=page.enabled=false")
    assert done.returncode == 0, done.stderr
    assert "port-forward" not in done.stdout


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, False),
        ({"keda": {"enabled": True}}, True),
        ({"keda": {"enabled": True}, "prometheus": {"addresses": ["http://prometheus"]}}, False),
    ],
)
def test_notes_tell_that_keda_lacks_a_prometheus(helm, values: dict, told: bool) -> None:
    arguments = ("zerolayer", str(helm.chart), "--dry-run=client", "--values=-")
    done = helm("install", *arguments, stdin=json.dumps(values))
    assert done.returncode == 0, done.stderr
    assert ("`prometheus.addresses`" in done.stdout.split("NOTES:")[1]) is told


def test_pool_in_the_notes_fits_the_definition(helm, crd_errors) -> None:
    done = helm(
        "install",
        "zerolayer",
        str(helm.chart),
        "--dry-run=client",
        "--values=-",
        stdin='{"watchNamespaces": ["team-a"]}',
    )
    document = re.search(r"<<EOF\n(.*?)\n +EOF", done.stdout.split("NOTES:")[1], re.DOTALL)
    assert document is not None
    assert crd_errors(yaml.safe_load(document[1])) == []
    assert "kubectl get zerolayerpools --namespace team-a --watch" in done.stdout


def test_release_name_becomes_part_of_every_name(helm) -> None:
    done = helm("template", "other", str(helm.chart), "--set=crds.install=false")
    names = {item["metadata"]["name"] for item in yaml.safe_load_all(done.stdout) if item}
    assert all(name.startswith("other-zerolayer") for name in names), names


def test_every_value_is_in_the_schema_and_nothing_else(helm) -> None:
    schema = json.loads((helm.chart / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((helm.chart / "values.yaml").read_text(encoding="utf-8"))

    def compare(part: dict, defaults: dict, path: str) -> None:
        if "properties" not in part:
            return
        assert part["additionalProperties"] is False, path
        assert set(part["properties"]) - {"global"} == set(defaults), path
        for name, value in defaults.items():
            if isinstance(value, dict) and name != "resources":
                compare(part["properties"][name], value, f"{path}.{name}")

    compare(schema, values, "values")
