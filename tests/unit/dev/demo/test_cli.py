from pathlib import Path

import pytest
from typer.testing import CliRunner

from zerolayer_dev.demo import cli, story, update_story
from zerolayer_dev.demo.stages import Stages


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cli, "repo_root", lambda: tmp_path)
    return tmp_path


def test_failure_names_the_stage_the_reason_and_where_to_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(stages: Stages) -> None:
        with stages.stage("start Kubernetes"):
            raise RuntimeError("no space left\nand much more")

    monkeypatch.setattr(story, "run", fail)
    result = CliRunner().invoke(cli.app, ["up"])

    assert result.exit_code == 1
    assert "The demo failed at: start Kubernetes\nno space left\n" in result.output
    assert "and much more" in (root / "out/demo-failure.txt").read_text()


def test_success_ends_with_the_table_of_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    def succeed(stages: Stages) -> None:
        with stages.stage("all of it"):
            pass

    monkeypatch.setattr(story, "run", succeed)
    result = CliRunner().invoke(cli.app, ["up"])

    assert result.exit_code == 0
    assert "all of it" in result.output.partition("stage ")[2]
    assert "make demo-down" in result.output


def test_failed_update_names_its_own_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(stages: Stages) -> None:
        raise RuntimeError("the update ended otherwise")

    monkeypatch.setattr(update_story, "run", fail)
    result = CliRunner().invoke(cli.app, ["update"])

    assert result.exit_code == 1
    assert "Run `make demo-update` again" in result.output
