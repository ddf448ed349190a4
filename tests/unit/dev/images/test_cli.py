from pathlib import Path

import pytest
from typer.testing import CliRunner

from zerolayer_dev.images import cli
from zerolayer_dev.images.progress import BuildError
from zerolayer_dev.images.specs import IMAGES


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def build(wanted: list[str], _: object) -> list[Path]:
        names.extend(wanted)
        return [Path(f"/cache/{name}.tar") for name in wanted]

    monkeypatch.setattr(cli, "build_images", build)
    monkeypatch.setattr(cli, "choose", lambda: None)
    return names


def test_named_images_are_built_and_their_archives_printed(asked: list[str]) -> None:
    result = CliRunner().invoke(cli.app, ["build", "operator", "worker"])

    assert (result.exit_code, result.stdout) == (0, "/cache/operator.tar\n/cache/worker.tar\n")
    assert asked == ["operator", "worker"]


def test_all_means_what_the_cpu_demo_needs(asked: list[str]) -> None:
    assert CliRunner().invoke(cli.app, ["build", "--all"]).exit_code == 0
    assert set(IMAGES) - set(asked) == {"worker-gpu"}


@pytest.mark.parametrize(("arguments", "said"), [(["oprator"], "oprator"), ([], "nothing")])
def test_unknown_names_are_answered_with_the_known_ones(
    asked: list[str], arguments: list[str], said: str
) -> None:
    result = CliRunner().invoke(cli.app, ["build", *arguments])

    assert result.exit_code == 2
    assert said in result.stderr
    assert "metrics-server" in result.stderr
    assert not asked


def test_a_failed_build_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise BuildError("no space left")

    monkeypatch.setattr(cli, "choose", fail)
    result = CliRunner().invoke(cli.app, ["build", "operator"])

    assert (result.exit_code, result.stderr) == (1, "no space left\n")
