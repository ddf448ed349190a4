"""Bundles are shown, and packed into what a cluster takes."""

import base64
import json
import resource
import shlex
import signal
from pathlib import Path

import pytest
import torch
import yaml

from zerolayer_dev.testing.tiny_anchor import make_tiny_bundle, tiny_metadata
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_operator.api.anchor import AnchorSpec
from zerolayer_worker.anchors.bundle import Bundle, write_bundle
from zerolayer_worker.cli import main
from zerolayer_worker.commands.anchor_pack import KEY, MAX_ANNOTATION_BYTES, MAX_CONFIG_MAP_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my bundle.safetensors"


@pytest.fixture
def bundle(path: Path, tmp_path: Path) -> Bundle:
    return make_tiny_bundle(path, make_tiny_model(tmp_path / "model"))


def sized(path: Path, size: int) -> Bundle:
    """A bundle of about as many bytes."""
    return write_bundle(path, {"model.norm.weight": torch.ones(size // 2)}, tiny_metadata())


def pack(path: Path, *arguments: str) -> int:
    return main(["anchor", "pack", str(path), "--configmap", "facts", *arguments])


def test_inspect_as_json(path: Path, bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anchor", "inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "facts",
        "version": "v1",
        "digest": bundle.digest,
        "bytes": path.stat().st_size,
        "baseModelDigest": bundle.metadata.base_model_digest,
        "created": "2026-11-30T12:00:00+00:00",
        "dtype": "bfloat16",
        "trainingDataDigest": bundle.metadata.training_data_digest,
        "evaluation": {"hit_rate": 0.5},
        "tensors": 5,
        "parameters": 5 * 64,
        "notFinite": 0,
    }


def test_inspect_for_people(path: Path, bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anchor", "inspect", str(path)]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["digest"], shown["parameters"], shown["evaluation.hit_rate"]) == (
        bundle.digest,
        "320",
        "0.5",
    )


@pytest.mark.parametrize("command", [("inspect",), ("pack", "--configmap", "facts")])
def test_what_is_no_bundle(path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    action, *rest = command
    for content in (None, b"nothing"):
        if content is not None:
            path.write_bytes(content)
        assert main(["anchor", action, str(path), *rest]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"anchor {action}: AnchorUnreadable: ")


def test_the_manifest_holds_the_bundle_and_the_snippet_names_it(
    path: Path, bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out put.yaml"
    assert pack(path, "--namespace", "ns", "-o", str(output)) == 0
    manifest = yaml.safe_load(output.read_text())
    assert manifest["metadata"] == {"name": "facts", "namespace": "ns"}
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "ConfigMap")
    assert base64.b64decode(manifest["binaryData"][KEY]) == path.read_bytes()
    command, said = capsys.readouterr().out.split("# and in the pool's spec:\n")
    assert shlex.split(command.splitlines()[1]) == ["kubectl", "apply", "-f", str(output)]
    spec = AnchorSpec.model_validate(yaml.safe_load(said)["anchor"])
    assert (spec.version, spec.digest) == ("v1", bundle.digest)
    assert spec.source.config_map is not None
    assert (spec.source.config_map.name, spec.source.config_map.key) == ("facts", KEY)


@pytest.mark.usefixtures("bundle")
def test_where_the_manifest_goes(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pack(path, "-o", "-") == 0
    captured = capsys.readouterr()
    assert "kubectl apply -f -\n" in captured.err
    assert pack(path) == 0
    assert "kubectl apply -f facts.yaml\n" in capsys.readouterr().out
    assert (tmp_path / "facts.yaml").read_text() == captured.out
    assert yaml.safe_load(captured.out)["metadata"] == {"name": "facts"}
    assert pack(path, "-o", "/nowhere/x") == 2


def test_a_manifest_is_whole_or_not_there(
    path: Path, bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "m"
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, allowed[1]))
    try:
        assert pack(path, "-o", str(output)) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
        signal.signal(signal.SIGXFSZ, handler)
    assert capsys.readouterr().err == f"anchor pack: {output}: File too large\n"
    assert not output.exists()


def test_the_manifest_does_not_replace_the_bundle(
    path: Path, bundle: Bundle, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pack(path, "-o", str(path)) == 2
    assert "is the bundle itself" in capsys.readouterr().err
    assert path.read_bytes() == bundle.content


def test_names_that_yaml_would_take_for_something_else(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bundle(path, {"model.norm.weight": torch.ones(8)}, tiny_metadata(version="1.10"))
    assert main(["anchor", "pack", str(path), "--configmap", "1e3", "-o", str(tmp_path / "m")]) == 0
    assert yaml.safe_load((tmp_path / "m").read_text())["metadata"]["name"] == "1e3"
    anchor = yaml.safe_load(capsys.readouterr().out.partition("spec:\n")[2])["anchor"]
    assert (anchor["version"], anchor["source"]["configMap"]["name"]) == ("1.10", "1e3")


@pytest.mark.parametrize(("kib", "flag"), [(180, ""), (200, " --server-side"), (1000, " --server-side")])
def test_a_large_one_is_applied_by_the_server(
    path: Path, tmp_path: Path, kib: int, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sized(path, kib * 1024)
    assert pack(path, "-o", str(tmp_path / "m")) == 0
    assert f"kubectl apply{flag} -f" in capsys.readouterr().out
    assert (len((tmp_path / "m").read_bytes()) > MAX_ANNOTATION_BYTES) == bool(flag)


def test_one_that_no_config_map_holds(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = sized(path, MAX_CONFIG_MAP_BYTES)
    assert pack(path, "-o", str(tmp_path / "m")) == 2
    assert not (tmp_path / "m").exists()
    told = capsys.readouterr().err
    assert f"{bundle.size} bytes, a ConfigMap holds 1048576" in told
    first, second = told.partition("spec:\n")[2].split("or\n")
    for text, kind in ((first, "persistentVolumeClaim"), (second, "image")):
        source = yaml.safe_load(text)["anchor"]["source"]
        assert set(source) == {kind}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--configmap", "Facts"],
        ["--configmap", "a", "--namespace", "a.b"],
        ["--configmap", "a-"],
        ["--configmap", "a..b"],
        ["--configmap", "a" * 254],
    ],
)
def test_names_that_kubernetes_refuses(
    path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["anchor", "pack", str(path), *arguments])
    assert caught.value.code == 2
    assert "is no name in Kubernetes" in capsys.readouterr().err
