from pathlib import Path

import pytest
from typer.testing import CliRunner

from zerolayer_dev.generate import cli


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cli, "repo_root", lambda: tmp_path)
    monkeypatch.setattr(cli, "render_all", lambda _root: {"docs/page.md": "new\n"})
    return tmp_path


def test_check_fails_and_shows_the_difference(root: Path) -> None:
    result = CliRunner().invoke(cli.app, ["--check"])

    assert result.exit_code == 1
    assert "+new" in result.output
    assert "stale: docs/page.md; run `make generate`" in result.output
    assert not (root / "docs").exists()


def test_what_was_written_passes_the_check(root: Path) -> None:
    written = CliRunner().invoke(cli.app, [])
    checked = CliRunner().invoke(cli.app, ["--check"])

    assert "wrote docs/page.md" in written.output
    assert (root / "docs/page.md").read_text() == "new\n"
    assert (checked.exit_code, checked.output) == (0, "1 generated files are up to date\n")
