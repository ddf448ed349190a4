import subprocess
import sys

import pytest

from zerolayer_operator import cli
from zerolayer_operator.settings import Settings


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZEROLAYER_WORKER_IMAGE", raising=False)


def test_bad_settings_are_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "zerolayer-operator: bad settings: ZEROLAYER_WORKER_IMAGE: field required\n"
    )


def test_help_lists_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    for name, field in Settings.model_fields.items():
        assert f"ZEROLAYER_{name.upper()}\n" in text
        assert (field.description or "") in text


@pytest.mark.parametrize("arguments", [["serve"], ["--namespace=x"]])
def test_unknown_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2


def test_bad_settings_are_told_before_anything_heavy_is_imported() -> None:
    program = (
        "import sys; from zerolayer_operator import cli\n"
        "heavy = {name for name in ('kopf', 'kubernetes', 'aiohttp') if name in sys.modules}\n"
        "sys.exit(','.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_good_settings_are_handed_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []

    async def run(settings: Settings) -> None:
        seen.append(settings)

    monkeypatch.setenv("ZEROLAYER_WORKER_IMAGE", "w:1")
    monkeypatch.setattr("zerolayer_operator.process.run", run)
    monkeypatch.setattr(cli.logs, "configure", lambda _level: None)
    cli.main([])
    assert [settings.worker_image for settings in seen] == ["w:1"]
