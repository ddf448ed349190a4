from pathlib import Path

import pytest
from kubernetes.aio.config import ConfigException

from zerolayer_operator import connect as module
from zerolayer_operator.connect import connect

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG, encoding="utf-8")
    # The package reads the variable once, when it is imported.
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


@pytest.mark.parametrize("in_pod", [False, True])
async def test_kubeconfig_comes_before_the_pod(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, in_pod: bool
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.9")
    async with connect() as client:
        assert client.configuration.host == "https://192.0.2.1:6443"


async def test_pod_uses_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.9")
    loaded: list[object] = []

    def load(client_configuration: object) -> None:
        loaded.append(client_configuration)

    monkeypatch.setattr(module.config, "load_incluster_config", load)
    async with connect() as client:
        assert loaded == [client.configuration]


async def test_no_cluster_at_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(tmp_path / "none")
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", missing)
    with pytest.raises(ConfigException, match="Invalid kube-config file"):
        async with connect():
            pass


@pytest.mark.parametrize(("exempt", "proxy"), [("", "http://192.0.2.8:3128"), ("192.0.2.1", None)])
async def test_environments_proxy_is_looked_up_once_for_all_requests(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, exempt: str, proxy: str | None
) -> None:
    monkeypatch.setenv("https_proxy", "http://192.0.2.8:3128")
    monkeypatch.setenv("no_proxy", exempt)
    async with connect() as client:
        assert client.configuration.proxy == proxy
        assert client.configuration.client_session_kwargs == {"trust_env": False}
