"""The command line: quick where it has to be, exit codes, help."""

import subprocess
import sys

import pytest

from zerolayer_worker.cli import main

HEAVY = ("torch", "pydantic", "starlette", "numpy", "huggingface_hub")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_drain_loads_nothing_heavy() -> None:
    code = (
        "import sys; from zerolayer_worker.cli import main\n"
        "code = main(['drain', '--ops-port', '1'])\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = python(code)
    assert result.stdout.strip() == "1 []"
    assert "127.0.0.1:1 (--ops-port)" in result.stderr


def test_the_server_is_importable_without_torch() -> None:
    code = (
        "import sys\n"
        "import zerolayer_worker.server.process, zerolayer_worker.server.app, zerolayer_worker.server.ops\n"
        "print('torch' in sys.modules)"
    )
    result = python(code)
    assert result.stdout.strip() == "False", result.stderr


def test_a_drain_starts_within_a_fraction_of_a_second() -> None:
    """The hook runs inside the grace period; measured as CPU time, so that other load does not count."""
    code = (
        "import time; from zerolayer_worker.cli import main\n"
        "main(['drain', '--ops-port', '1']); print(time.process_time())"
    )
    seconds = min(float(python(code).stdout) for _ in range(2))
    assert seconds < 0.3


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ([], "COMMAND"),
        (["dance"], "invalid choice"),
        (["drain", "--ops-port", "x"], "--ops-port"),
        (["model"], "ACTION"),
    ],
)
def test_wrong_usage_exits_with_2(argv: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert named in capsys.readouterr().err


def test_a_wrong_configuration_exits_with_2_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--model-path", "/nowhere"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("serve: --model-path: /nowhere")


def test_help_of_serve_tells_meaning_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--help"])
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--max-queue N requests that may wait; more get 429 (64)" in text
    assert (
        "--allowed-intents A,B,C permitted intents, separated by commas (deterministic,balanced,creative)"
        in text
    )


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(command in text for command in ("serve", "drain", "model"))
