"""Values that look like numbers, booleans or nothing stay strings, and a value that is taken away is none."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from zerolayer_dev.paths import repo_root
from zerolayer_operator.settings import Settings

Object = dict[str, Any]
CHART = repo_root() / "charts" / "zerolayer"
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
PLAIN = "plainword"
LOOKALIKES = ["123", "true", "null"]


def strings(schema: Object, word: str) -> Any:
    """A value with the word wherever the schema lets one stand, and every switch on."""
    while "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return strings(schema["anyOf"][-1], word)
    if schema.get("type") == "boolean":
        return True
    if schema.get("type") == "string":
        wanted = [item["pattern"] for item in [schema, *schema.get("allOf", ())] if "pattern" in item]
        return word if all(re.search(pattern, word) for pattern in wanted) else None
    return several(schema, word)


def several(schema: Object, word: str) -> Any:
    """The same for a list or an object; nothing where no word can stand."""
    if schema.get("type") == "array":
        item = strings(schema["items"], word)
        return None if item is None else [item]
    if "patternProperties" in schema:
        return {word: word}
    parts = {name: strings(part, word) for name, part in schema.get("properties", {}).items()}
    return {name: part for name, part in parts.items() if part is not None} or None


def everywhere(helm: Any, word: str) -> list[Object]:
    values: Object = strings(SCHEMA, word)
    # Kubernetes' own types, which the schema leaves to the API server.
    values["tolerations"] = [{"key": word, "operator": "Equal", "value": word}]
    values["affinity"] = {"podAffinity": {"x": {"topologyKey": word}}}
    done = helm(
        "template", word, str(helm.chart), f"--namespace={word}", "--values=-", stdin=json.dumps(values)
    )
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def leaves(item: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict):
        for name, part in item.items():
            assert isinstance(name, str), f"{path}: {name!r} is no string"
            yield from leaves(part, f"{path}/{name}")
    elif isinstance(item, list):
        for index, part in enumerate(item):
            yield from leaves(part, f"{path}/{index}")
    else:
        yield path, item


@pytest.mark.parametrize("word", LOOKALIKES)
@pytest.mark.parametrize("watched", [True, False], ids=["namespaces", "cluster"])
def test_strings_stay_strings(helm: Any, word: str, watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not watched:
        monkeypatch.delitem(SCHEMA["properties"], "watchNamespaces")
    plain = dict(leaves(everywhere(helm, PLAIN)))
    found = dict(leaves(everywhere(helm, word)))
    expected = {
        path.replace(PLAIN, word): value.replace(PLAIN, word) if isinstance(value, str) else value
        for path, value in plain.items()
    }
    assert found == expected
    assert sum(PLAIN in value for value in plain.values() if isinstance(value, str)) > 50


def test_words_stand_in_every_value_that_could_be_taken_for_something_else() -> None:
    """The test above is about these; a value that is missing here has a pattern that no number fits."""
    found = {path for path, value in leaves(strings(SCHEMA, "123")) if value == "123"}
    assert found >= {
        "/image/repository",
        "/image/tag",
        "/imagePullSecrets/0",
        "/watchNamespaces/0",
        "/networkPolicy/prometheusNamespace",
        "/metrics/podMonitor/labels/123",
        "/metrics/prometheusRule/labels/123",
        "/metrics/grafanaDashboard/labels/123",
        "/pools/podMonitor/labels/123",
        "/podAnnotations/123",
        "/nodeSelector/123",
        "/priorityClassName",
        "/serviceAccount/annotations/123",
    }


@pytest.mark.parametrize("word", LOOKALIKES)
def test_name_of_a_long_release_stays_a_string(helm: Any, word: str) -> None:
    """What is left of a long name can be a number."""
    release = "1" * 53
    done = helm("template", release, str(helm.chart), f"--namespace={word}")
    assert done.returncode == 0, done.stderr
    for item in filter(None, yaml.safe_load_all(done.stdout)):
        assert isinstance(item["metadata"]["name"], str), item
        assert item["metadata"].get("namespace", word) == word, item
    assert f'resourceNames: ["{release}"]' in done.stdout


def test_empty_strings_stay(render: Callable[..., list[Object]]) -> None:
    labelled = {"enabled": True, "labels": {"b": ""}}
    kinds = ("podMonitor", "prometheusRule", "grafanaDashboard")
    objects = render({"podAnnotations": {"a": ""}, "metrics": dict.fromkeys(kinds, labelled)})
    (deployment,) = [item for item in objects if item["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["metadata"]["annotations"] == {
        "a": "",
        "kubectl.kubernetes.io/default-container": "operator",
    }
    for kind in ("PodMonitor", "PrometheusRule", "ConfigMap"):
        (made,) = [item for item in objects if item["kind"] == kind]
        assert made["metadata"]["labels"]["b"] == ""


def test_own_labels_and_annotations_come_once(helm: Any) -> None:
    """A value with a key that the chart sets itself makes no second entry of it."""
    labelled = {"enabled": True, "labels": {"app.kubernetes.io/instance": "mine"}}
    kinds = {
        "podMonitor": "podmonitor",
        "prometheusRule": "prometheusrule",
        "grafanaDashboard": "dashboard",
    }
    values = {
        "podAnnotations": {"kubectl.kubernetes.io/default-container": "sidecar"},
        "metrics": dict.fromkeys(kinds, labelled),
    }
    for template in kinds.values():
        done = helm.template(values, f"--show-only=templates/{template}.yaml")
        assert done.stdout.count("\n    app.kubernetes.io/instance: zerolayer") == 1
        assert "mine" not in done.stdout
    done = helm.template(values, "--show-only=templates/deployment.yaml")
    assert re.findall(r"default-container: (\S+)", done.stdout) == ["sidecar"]


def paths(values: Object, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        yield (*prefix, name)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, name))


def without(path: tuple[str, ...]) -> Object:
    """Values with every template switched on and one value taken away."""
    kinds = ("podMonitor", "prometheusRule", "grafanaDashboard")
    values: Object = {"metrics": {kind: {"enabled": True} for kind in kinds}}
    *groups, last = path
    place = values
    for name in groups:
        place = place.setdefault(name, {})
    place[last] = None
    return values


@pytest.mark.parametrize("path", list(paths(DEFAULTS)), ids=".".join)
def test_value_that_is_taken_away_is_empty_or_refused_by_its_name(
    helm: Any, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = without(path)
    done = helm.template(values)
    if done.returncode != 0:
        assert "values don't meet the specifications of the schema" in done.stderr
        assert f"'{path[-1]}'" in done.stderr
        return
    objects = [item for item in yaml.safe_load_all(done.stdout) if item]
    (deployment,) = [item for item in objects if item["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for entry in container["env"]:
        if "value" in entry:
            monkeypatch.setenv(entry["name"], entry["value"])
    Settings()  # pyright: ignore[reportCallIssue] - filled from the environment
    assert [where for item in objects for where, value in leaves(item) if value is None] == []
