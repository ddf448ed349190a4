import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from zerolayer_operator.cli import describe
from zerolayer_operator.settings import Settings


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_WORKER_IMAGE", "example.org/worker:1")


def test_defaults_serve_the_whole_cluster() -> None:
    settings = Settings()
    assert settings.namespaces == ()
    assert (settings.lease_duration_s, settings.resync_interval_s) == (15, 60)
    assert (settings.health_port, settings.metrics_port) == (8080, 9090)


def test_two_processes_on_one_machine_never_share_a_name() -> None:
    assert Settings().pod_name != Settings().pod_name


def test_settings_never_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().log_level = "DEBUG"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described(name: str) -> None:
    assert (Settings.model_fields[name].description or "").endswith(".")


@pytest.mark.parametrize(
    ("value", "namespaces"),
    [("", ()), ("a", ("a",)), ("a,b", ("a", "b")), (" a , b ,", ("a", "b")), ("b,a,b", ("b", "a"))],
)
def test_namespaces(monkeypatch: pytest.MonkeyPatch, value: str, namespaces: tuple[str, ...]) -> None:
    monkeypatch.setenv("ZEROLAYER_NAMESPACES", value)
    assert Settings().namespaces == namespaces


LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.lists(LABELS, unique=True), st.sampled_from([",", ", ", " ,", ",,"]))
def test_any_list_of_namespaces_is_read_back(names: list[str], separator: str) -> None:
    assert Settings(namespaces=separator.join(names)).namespaces == tuple(names)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WORKER_IMAGE", ""),
        ("WORKER_IMAGE", "ghcr.io:99999/worker"),
        ("WORKER_IMAGE_PULL_POLICY", "Sometimes"),
        ("NAMESPACES", "Upper"),
        ("NAMESPACES", "a;b"),
        ("POD_NAMESPACE", "a.b"),
        ("POD_NAME", "-a"),
        ("LEASE_NAME", "a b"),
        ("LEASE_DURATION_S", "2"),
        ("LEASE_DURATION_S", "fifteen"),
        ("RESYNC_INTERVAL_S", "0"),
        ("RESYNC_INTERVAL_S", "nan"),
        ("HUB_ENDPOINT", "huggingface.co"),
        ("HUB_ENDPOINT", "https://me:secret@hub.example.org"),
        ("HUB_ENDPOINT", "http://x:99999"),
        ("HUB_ENDPOINT", "http://x:0"),
        ("HUB_ENDPOINT", "http://[:::]"),
        ("NETWORK_POLICY", "perhaps"),
        ("REGISTRIES", "ghcr.io/org"),
        ("REGISTRIES", "ghcr.io,*"),
        ("REGISTRIES", "ftp://ghcr.io"),
        ("REGISTRIES", "ghcr.io:99999"),
        ("REGISTRIES", "ghcr.io:0"),
        ("REGISTRIES", "http://a,https://a"),
        ("POD_MONITOR", "maybe"),
        ("POD_MONITOR_INTERVAL", "often"),
        ("POD_MONITOR_INTERVAL", "30s1h"),
        ("POD_MONITOR_INTERVAL", "0s"),
        ("POD_MONITOR_INTERVAL", "1" * 400 + "s"),
        ("POD_MONITOR_LABELS", "release=p"),
        ("POD_MONITOR_LABELS", '{"a b": "c"}'),
        ("POD_MONITOR_LABELS", '{"a": "y z!"}'),
        ("POD_MONITOR_LABELS", '{"release": 1}'),
        ("POD_MONITOR_LABELS", '["release"]'),
        ("KEDA", "perhaps"),
        ("GATEWAY", "perhaps"),
        ("PROMETHEUS_ADDRESSES", "prometheus:9090"),
        ("PROMETHEUS_ADDRESSES", "http://a,ftp://b"),
        ("PROMETHEUS_ADDRESSES", "https://me:secret@prometheus"),
        ("IMAGE_VOLUMES", "2"),
        ("ALLOW_HOST_PATH", "/srv"),
        ("METRICS_PORT", "tcp://10.0.0.1:9090"),
        ("HEALTH_PORT", "0"),
        ("HEALTH_PORT", "65536"),
        ("LOG_LEVEL", "LOUD"),
    ],
)
def test_bad_value_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(f"ZEROLAYER_{variable}", value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    text = describe(caught.value)
    assert text.startswith(f"bad settings: ZEROLAYER_{variable}: ")
    assert "\n" not in text


def test_several_bad_values_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZEROLAYER_WORKER_IMAGE")
    monkeypatch.setenv("ZEROLAYER_LOG_LEVEL", "LOUD")
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert "ZEROLAYER_WORKER_IMAGE: field required" in describe(caught.value)
    assert "ZEROLAYER_LOG_LEVEL" in describe(caught.value)


def test_labels_are_read_from_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_POD_MONITOR_LABELS", '{"release": "p"}')
    assert Settings().pod_monitor_labels == {"release": "p"}


def test_log_level_is_read_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_LOG_LEVEL", "debug")
    assert Settings().log_level == "DEBUG"


def test_port_zero_and_one_service_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Kubernetes injects for a Service called `zerolayer` is not taken for a setting."""
    monkeypatch.setenv("ZEROLAYER_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("ZEROLAYER_PORT", "tcp://10.0.0.1:80")
    assert Settings().health_port == 8080


def test_first_prometheus_stays_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_PROMETHEUS_ADDRESSES", "http://b:9090, https://a/path,http://b:9090")
    assert Settings().prometheus_addresses == ("http://b:9090", "https://a/path")
