"""Flags, variables, defaults, and messages that name the flag and the remedy."""

import argparse
import os
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.commands import serve
from zerolayer_worker.commands.serve import FLAGS
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.config import ConfigError, WorkerConfig, load_config
from zerolayer_worker.server.loading import engine_config


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ZEROLAYER_"):
            monkeypatch.delenv(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "tiny"
    model.mkdir()
    (model / "config.json").write_text("{}")
    return model


def test_defaults(folder: Path) -> None:
    config = load_config({"model_path": str(folder)})
    assert (config.host, config.port, config.ops_port, config.device, config.dtype) == (
        "0.0.0.0",  # noqa: S104
        8000,
        8081,
        "cpu",
        "auto",
    )
    assert (config.served_name, config.model_folder) == ("tiny", folder)
    assert (config.max_batch_size, config.drain_seconds, config.warmup_timeout_seconds) == (8, 90, 600)
    assert config.default_intent is Intent.BALANCED
    assert config.allowed_intents == frozenset(Intent)


def test_variables_are_read_and_flags_win(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_MODEL_PATH", str(folder))
    monkeypatch.setenv("ZEROLAYER_MAX_QUEUE", "5")
    monkeypatch.setenv("ZEROLAYER_MAX_BATCH_SIZE", "3")
    monkeypatch.setenv("ZEROLAYER_ALLOWED_INTENTS", "balanced, creative")
    monkeypatch.setenv("ZEROLAYER_REVISION", "")
    config = load_config({"max_batch_size": "4"})
    assert (config.max_queue, config.max_batch_size, config.revision) == (5, 4, "")
    assert config.allowed_intents == {Intent.BALANCED, Intent.CREATIVE}


def test_a_builtin_is_looked_up_in_its_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_BUILTIN_DIR", str(folder.parent))
    config = load_config({"builtin": "tiny"})
    assert (config.model_folder, config.served_name) == (folder, "tiny")
    assert load_config({"builtin": "tiny", "model_name": "other"}).served_name == "other"


def test_the_variable_of_a_service_called_zerolayer_is_no_port(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEROLAYER_PORT", "tcp://10.96.0.7:80")
    monkeypatch.setenv("ZEROLAYER_SERVICE_HOST", "10.96.0.7")
    assert load_config({"model_path": str(folder)}).port == 8000


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({}, "exactly one of --model-path DIR and --builtin NAME"),
        ({"builtin": "tiny", "model_path": "x"}, "exactly one of --model-path DIR and --builtin NAME"),
        ({"builtin": "huge"}, "--builtin: "),
        ({"builtin": "huge"}, "built-in models in .*: tiny"),
        ({"model_path": "/nowhere"}, "--model-path: /nowhere holds no config.json"),
        ({"builtin": "tiny", "port": "0"}, "--port: "),
        ({"builtin": "tiny", "port": "http"}, r"--port: .*integer.*got 'http'"),
        ({"builtin": "tiny", "port": "8081"}, "--port and --ops-port must differ"),
        ({"builtin": "tiny", "device": "tpu"}, "--device: .*'cpu' or 'cuda'"),
        ({"builtin": "tiny", "dtype": "int8"}, "--dtype: "),
        ({"builtin": "tiny", "max_batch_size": "0"}, "--max-batch-size: "),
        ({"builtin": "tiny", "max_queue": "-1"}, "--max-queue: "),
        ({"builtin": "tiny", "default_intent": "wild"}, "--default-intent: .*'deterministic'"),
        ({"builtin": "tiny", "allowed_intents": "balanced,wild"}, "--allowed-intents: "),
        ({"builtin": "tiny", "allowed_intents": "creative"}, "--default-intent balanced must be one of"),
        ({"builtin": "tiny", "revision": "a b"}, "--revision: "),
        ({"builtin": "tiny", "warmup_settle_ratio": "1"}, "--warmup-settle-ratio: "),
        ({"builtin": "tiny", "drain_seconds": "0"}, "--drain-seconds: "),
        ({"builtin": "tiny", "api_key_dir": "/nowhere"}, "--api-key-dir: /nowhere is not a folder"),
    ],
)
def test_errors_name_flag_and_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, Any], named: str
) -> None:
    monkeypatch.setenv("ZEROLAYER_BUILTIN_DIR", str(folder.parent))
    with pytest.raises(ConfigError, match=named):
        load_config(flags)


def test_an_error_in_a_variable_names_the_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROLAYER_MAX_QUEUE", "many")
    with pytest.raises(ConfigError, match=r"ZEROLAYER_MAX_QUEUE \(flag --max-queue\): .*got 'many'"):
        load_config({"model_path": str(folder)})


def test_every_field_is_a_flag_but_the_images_own(folder: Path) -> None:
    fields = {name.replace("_", "-") for name in WorkerConfig.model_fields}
    assert fields - {"builtin-dir"} == set(FLAGS)
    assert all(field.description for field in WorkerConfig.model_fields.values())


def test_an_anchor_is_named_by_file_version_and_digest(folder: Path) -> None:
    digest = "sha256:" + "0" * 64
    flags = {"model_path": str(folder), "anchor_path": "/a", "anchor_version": "v1", "anchor_digest": digest}
    config = load_config(flags)
    assert (config.anchor_path, config.anchor_version, config.anchor_digest) == (Path("/a"), "v1", digest)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"anchor_version": "v1"}, "need --anchor-path FILE"),
        ({"anchor_digest": "sha256:" + "0" * 64}, "need --anchor-path FILE"),
        ({"anchor_path": "/a", "anchor_version": "v 1"}, "--anchor-version: "),
        ({"anchor_path": "/a", "anchor_digest": "sha256:0"}, "--anchor-digest: "),
    ],
)
def test_an_anchor_that_is_named_badly(folder: Path, flags: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        load_config({"model_path": str(folder), **flags})


def test_graphs_are_on_off_or_left_to_the_device(folder: Path) -> None:
    parser = argparse.ArgumentParser()
    serve.add_parser(parser.add_subparsers())
    cases = {"--cuda-graphs": True, "--no-cuda-graphs": False, "--cuda-graphs=false": False, "": None}
    for given, expected in cases.items():
        flags = vars(parser.parse_args(["serve", "--model-path", str(folder), *([given] if given else [])]))
        given_flags = {name: value for name, value in flags.items() if name.replace("_", "-") in FLAGS}
        assert engine_config(load_config(given_flags)).cuda_graphs is expected


def test_a_switch_needs_no_value(folder: Path) -> None:
    parser = argparse.ArgumentParser()
    serve.add_parser(parser.add_subparsers())
    for given, expected in ((["--skip-ska-lora"], True), (["--skip-ska-lora", "false"], False)):
        flags = vars(parser.parse_args(["serve", "--model-path", str(folder), "--lora-path", "/a", *given]))
        given_flags = {name: value for name, value in flags.items() if name.replace("_", "-") in FLAGS}
        assert load_config(given_flags).skip_ska_lora is expected
    with pytest.raises(ConfigError, match="--skip-ska-lora needs --lora-path"):
        load_config({"model_path": str(folder), "skip_ska_lora": "true"})
