import stat
from pathlib import Path

import pytest

from zerolayer_dev.cluster import api, external
from zerolayer_dev.cluster.api import ClusterError, UnsupportedError
from zerolayer_dev.cluster.external import CurrentCluster, KindCluster


class Recorder:
    """Stands in for running programs: keeps their command lines, answers with what was prepared."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.commands: list[str] = []

    def __call__(self, command: list[str], **_: object) -> str:
        line = " ".join(command)
        self.commands.append(line)
        return next((answer for start, answer in self.answers.items() if line.startswith(start)), "")


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorder:
    recorder = Recorder(
        {
            "kind get clusters": "other\nx\n",
            "kind get kubeconfig": "kind's",
            "kubectl config current-context": "mine\n",
            "kubectl config view": "current's",
        }
    )
    monkeypatch.setattr(external, "output", recorder)
    monkeypatch.setattr(external.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    return recorder


def test_kind_creates_a_cluster_that_does_not_exist(programs: Recorder, tmp_path: Path) -> None:
    programs.answers["kind create"] = ""
    programs.answers["kind get clusters"] = "other\n"
    with pytest.raises(ClusterError, match="kind has no cluster y"):
        KindCluster.up("y")  # this recorder creates nothing
    kubeconfig = tmp_path / "kubeconfigs" / "kind-y"
    assert f"kind create cluster --name=y --kubeconfig={kubeconfig} --wait=300s" in programs.commands


def test_kind_uses_a_cluster_that_exists(programs: Recorder) -> None:
    cluster = KindCluster.up("x")
    assert cluster.kubeconfig.read_text() == "kind's"
    assert not any(line.startswith("kind create") for line in programs.commands)


def test_kind_loads_archives_and_enters_its_node(programs: Recorder) -> None:
    cluster = KindCluster.up("x")
    assert cluster.load_image(Path("/images/worker.tar"))
    cluster.exec_in_node(["ls"])
    cluster.down()
    assert programs.commands[-3:] == [
        "kind load image-archive /images/worker.tar --name=x",
        "docker exec x-control-plane ls",
        "kind delete cluster --name=x",
    ]


def test_a_missing_kind_is_named_with_its_installation(
    programs: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external.shutil, "which", lambda _: None)
    with pytest.raises(ClusterError, match=r"no kind on the PATH; install it: https://kind\.sigs"):
        KindCluster.up("x")


@pytest.mark.parametrize("allowed", [None, "", "other", "MINE", "mine2"])
def test_the_current_context_is_refused_unless_named(
    programs: Recorder, monkeypatch: pytest.MonkeyPatch, allowed: str | None
) -> None:
    if allowed is not None:
        monkeypatch.setenv("ZEROLAYER_ALLOW_CONTEXT", allowed)
    with pytest.raises(ClusterError, match="ZEROLAYER_ALLOW_CONTEXT=mine"):
        CurrentCluster.use()
    assert programs.commands == ["kubectl config current-context"]


def test_the_named_context_is_copied_so_that_switching_does_not_redirect(
    programs: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEROLAYER_ALLOW_CONTEXT", "mine")
    cluster = CurrentCluster.use()
    assert programs.commands[-1] == "kubectl config view --minify --flatten --context=mine"
    assert cluster.kubeconfig.read_text() == "current's"
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600


def test_contexts_with_names_of_any_kind_can_be_used(
    programs: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = "arn:aws:eks:eu-west-1:123456789012:cluster/Prod_1"
    programs.answers["kubectl config current-context"] = context
    monkeypatch.setenv("ZEROLAYER_ALLOW_CONTEXT", context)
    assert CurrentCluster.use().name == context


def test_the_users_cluster_is_neither_loaded_entered_nor_ended(
    programs: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEROLAYER_ALLOW_CONTEXT", "mine")
    cluster = CurrentCluster.use()
    ran = len(programs.commands)
    assert not cluster.load_image(Path("/images/worker.tar"))
    with pytest.raises(UnsupportedError, match="cannot run"):
        cluster.exec_in_node(["ls"])
    with pytest.raises(UnsupportedError, match="is yours"):
        cluster.down()
    with pytest.raises(UnsupportedError, match="audit log"):
        _ = cluster.audit_log
    assert len(programs.commands) == ran


def test_cluster_chooses_the_kind_of_cluster(programs: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER", "kind")
    assert isinstance(api.up("x"), KindCluster)
    assert isinstance(api.find("x"), KindCluster)
    monkeypatch.setenv("CLUSTER", "current")
    monkeypatch.setenv("ZEROLAYER_ALLOW_CONTEXT", "mine")
    assert isinstance(api.up("x"), CurrentCluster)
    with pytest.raises(UnsupportedError):
        api.down("x")


@pytest.mark.parametrize("call", [api.up, api.find, api.down])
def test_unknown_kinds_of_cluster_are_refused(monkeypatch: pytest.MonkeyPatch, call: object) -> None:
    monkeypatch.setenv("CLUSTER", "minikube")
    assert callable(call)
    with pytest.raises(ClusterError, match="use local, kind or current"):
        call("x")
