"""The chart's schema, the operator's settings and Kubernetes agree on which values are good."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from yarl import URL

from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import go_patterns
from zerolayer_operator.observe.registry import Registries
from zerolayer_operator.settings import Settings

SCHEMA = json.loads((repo_root() / "charts/zerolayer/values.schema.json").read_text(encoding="utf-8"))
DEFINITION = repo_root() / "tests/integration/definitions/podmonitors.yaml"


def part(*path: str) -> dict[str, Any]:
    """A value's part of the schema, with what it refers to."""
    found: dict[str, Any] = SCHEMA
    for name in path:
        found = found["properties"][name]
        if "$ref" in found:
            found = SCHEMA["definitions"][found["$ref"].rpartition("/")[2]]
    return found | {"definitions": SCHEMA["definitions"]}


def fits(value: object, *path: str) -> bool:
    return go_patterns.Draft7Validator(part(*path)).is_valid(value)


def read(**settings: object) -> Settings | None:
    """The settings, or nothing where they are refused by the setting's name."""
    try:
        return Settings.model_validate({"worker_image": "worker:1", **settings})
    except ValidationError as error:
        if {item["loc"][0] for item in error.errors()} != set(settings):
            raise
        return None


def interval_pattern() -> str:
    """What the PodMonitor's own definition says of an interval."""
    definition = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec["properties"]["podMetricsEndpoints"]["items"]["properties"]["interval"]["pattern"]


def is_label_value(text: str) -> bool:
    """As Kubernetes checks it: k8s.io/apimachinery/pkg/util/validation."""
    return len(text) <= 63 and bool(re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", text))


def is_label_key(text: str) -> bool:
    *prefix, name = text.split("/")
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    good = not prefix or (
        len(prefix) == 1
        and len(prefix[0]) <= 253
        and bool(re.fullmatch(rf"{label}(\.{label})*", prefix[0], re.ASCII))
    )
    return good and name != "" and is_label_value(name)


@given(st.from_regex(r"([0-9]{1,8}(ms|s|m|h|d|y|)){0,4}|0{0,2}(ms|s|m|h)?", fullmatch=True))
def test_interval_is_one_for_prometheus_and_not_zero(text: str) -> None:
    good = fits(text, "pools", "podMonitor", "interval")
    assert good == fits(text, "metrics", "podMonitor", "interval")
    assert good == (read(pod_monitor_interval=text) is not None)
    if good:
        assert go_patterns.compiled(interval_pattern()).search(text)
        assert re.search("[1-9]", text)
        assert len(text) <= 40


@pytest.mark.parametrize(
    "text", ["30s", "1m30s", "1h", "500ms", "1h20m15s3ms", "90s", "999999h999999m999999s999999ms"]
)
def test_usual_intervals_are_taken(text: str) -> None:
    assert fits(text, "pools", "podMonitor", "interval")
    assert read(pod_monitor_interval=text)


@pytest.mark.parametrize(
    "text", ["30s1h", "0s", "0h0m0s", "0", "", "1s1s", "1d", "30", "1" * 400 + "s", "-1s"]
)
def test_other_intervals_are_refused(text: str) -> None:
    assert not fits(text, "pools", "podMonitor", "interval")
    assert not fits(text, "metrics", "podMonitor", "interval")
    assert read(pod_monitor_interval=text) is None


PIECES = st.text(st.sampled_from("aZ09-_./ !é"), max_size=6)
LONG = st.builds(lambda text, count: text * count, st.sampled_from(["a", "a.", "b-"]), st.integers(30, 260))
WORDS = st.one_of(PIECES, LONG, st.builds("{}/{}".format, st.one_of(PIECES, LONG), st.one_of(PIECES, LONG)))


@given(WORDS, WORDS)
def test_labels_are_those_of_kubernetes(key: str, value: str) -> None:
    good = is_label_key(key) and is_label_value(value)
    assert fits({key: value}, "pools", "podMonitor", "labels") == good
    assert fits({key: value}, "metrics", "podMonitor", "labels") == good
    assert fits({key: value}, "nodeSelector") == good
    assert (read(pod_monitor_labels=json.dumps({key: value})) is not None) == good
    if is_label_key(key):
        assert fits({key: value}, "podAnnotations")
        assert fits({key: value}, "serviceAccount", "annotations")


PORTED = [
    pytest.param(("image", "repository"), None, "registry.example.org:{}/operator", id="image.repository"),
    pytest.param(("worker", "image"), "worker_image", "registry.example.org:{}/worker:1", id="worker.image"),
    pytest.param(("worker", "image"), "worker_image", "[::1]:{}/worker", id="worker.image at an address"),
    pytest.param(("huggingFace", "endpoint"), "hub_endpoint", "http://hub:{}", id="huggingFace.endpoint"),
    pytest.param(("huggingFace", "endpoint"), "hub_endpoint", "https://[::1]:{}/a", id="endpoint, address"),
    pytest.param(("registries",), "registries", "registry.example.org:{}", id="registries"),
    pytest.param(("registries",), "registries", "http://10.0.0.1:{}", id="registries without TLS"),
    pytest.param(
        ("prometheus", "addresses"), "prometheus_addresses", "http://prometheus.a:{}", id="prometheus"
    ),
]


@pytest.mark.parametrize(("path", "setting", "text"), PORTED)
def test_ports_are_from_1_to_65535(path: tuple[str, ...], setting: str | None, text: str) -> None:
    schema = part(*path)
    pattern = go_patterns.compiled(schema.get("items", schema)["pattern"])
    taken = [port for port in range(100_000) if pattern.search(text.format(port))]
    assert taken == list(range(1, 65536))
    for port in ("", "00", "080", "99999", "100000", "65536", "+80", "8o80", "-1"):
        assert not pattern.search(text.format(port)), port
        assert setting is None or read(**{setting: text.format(port)}) is None, port
    for port in (1, 80, 443, 5000, 9999, 10000, 59999, 60000, 64999, 65000, 65499, 65535):
        assert setting is None or read(**{setting: text.format(port)}), port


def test_every_value_with_an_address_is_among_these() -> None:
    """A value that takes a port of five digits takes none that is out of range."""
    # A name before a colon and digits alone is an image with a tag.
    texts = [str(param.values[2]).format(99999) for param in PORTED]
    candidates = [text for text in texts if "/" in text]
    for where, pattern in patterns(SCHEMA):
        assert not [text for text in candidates if go_patterns.compiled(pattern).search(text)], where


def patterns(schema: object, where: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield where, schema["pattern"]
        for name, item in schema.items():
            # Nobody takes a key for an address, and a digit may stand anywhere.
            if name not in {"propertyNames", "allOf"}:
                yield from patterns(item, f"{where}/{name}")


HOSTS = st.from_regex(r"(https?://)?[A-Za-z0-9][A-Za-z0-9.-]{0,9}(:[0-9]{1,6})?", fullmatch=True)


@given(HOSTS)
def test_whatever_registry_is_taken_can_be_asked(text: str) -> None:
    good = read(registries=text)
    assert (good is not None) == fits([text], "registries")
    if good is not None:
        Registries(good.registries)


@pytest.mark.parametrize("end", ["\n", " ", "\r\n", "\u00a0", "\u2028"])
@pytest.mark.parametrize(
    ("path", "setting", "text"),
    [
        (("huggingFace", "endpoint"), "hub_endpoint", "http://hub/"),
        (("huggingFace", "endpoint"), "hub_endpoint", "http://hub"),
        (("worker", "image"), "worker_image", "worker:1"),
        (("pools", "podMonitor", "interval"), "pod_monitor_interval", "30s"),
    ],
)
def test_what_stands_after_a_good_value_is_judged_alike(
    path: tuple[str, ...], setting: str, text: str, end: str
) -> None:
    assert fits(text, *path)
    assert read(**{setting: text})
    assert fits(text + end, *path) == (read(**{setting: text + end}) is not None)


@given(
    st.from_regex(
        r"https?://([A-Za-z0-9.-]{1,8}|\[[0-9a-f:.]{2,8}\])(:[0-9]{0,6})?(/[^?#]{0,6})?", fullmatch=True
    )
)
def test_whatever_endpoint_is_taken_is_an_address(text: str) -> None:
    good = read(hub_endpoint=text)
    if good is None:
        # Only whether digits and colons make an address is beyond a schema.
        assert not fits(text, "huggingFace", "endpoint") or "[" in text
    else:
        assert fits(text, "huggingFace", "endpoint")
        assert URL(good.hub_endpoint).port in range(1, 65536)


TWICE = [
    (["http://a", "https://a"], "a"),
    (["a", "https://a"], "a"),
    (["ghcr.io", "http://GHCR.io"], "ghcr.io"),
    (["b", "a:5000", "http://a:5000"], "a:5000"),
]


@pytest.mark.parametrize(("registries", "host"), TWICE)
def test_host_is_listed_once(helm: Any, registries: list[str], host: str) -> None:
    done = helm.template({"registries": registries})
    assert done.returncode != 0
    assert f"registries: {host} is listed twice, as " in done.stderr

    with pytest.raises(ValidationError, match=re.escape(f"{host} is listed twice, as ")):
        Settings.model_validate({"worker_image": "worker:1", "registries": ",".join(registries)})


def test_one_host_with_several_ports_is_no_repetition(render: Callable[..., list[Any]]) -> None:
    registries = ["a", "a:443", "http://a:5000", "b"]
    assert render({"registries": registries})
    assert read(registries=",".join(registries))
