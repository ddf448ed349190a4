"""The command line: flags before and after the command, and what is refused as wrong usage."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from zerolayer_dev.testing.updating_pools import body_with, status_with, update_at
from zerolayer_kubectl.cli import main
from zerolayer_operator.api.update_status import Step

Run = Callable[..., int]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[str]]:
    """The arguments of kubectl's first call, by a kubectl that only writes them down and fails."""
    program, record = tmp_path / "kubectl", tmp_path / "arguments"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {record}\necho "error: no cluster here" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return lambda: record.read_text().splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--context=c", "-n", "team", "status", "facts"],
        ["status", "facts", "--namespace", "team", "--context", "c"],
        ["--context=c", "status", "-n", "team", "zlp/facts"],
    ],
)
def test_kubectls_flags_may_stand_anywhere(
    called: Callable[[], list[str]], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert called() == [
        "--namespace=team", "--context=c", "get", "zerolayerpools.zerolayer.dev", "facts", "--output=json",
    ]  # fmt: skip
    assert capsys.readouterr().err == "kubectl zerolayer: no cluster here\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["dance"], "invalid choice"),
        (["status"], "POOL"),
        (["status", "a,b"], "is no name of a pool"),
        (["status", "facts", "--timeout=soon", "-w"], "is no duration"),
        (["status", "facts", "--timeout=5m"], "--timeout needs"),
        (["promote", "facts", "--timeout=5m", "--yes"], "--timeout needs"),
        (["promote", "facts", "-o", "json"], "unrecognized arguments"),
        (["history", "facts", "-o", "yaml"], "invalid choice"),
    ],
)
def test_wrong_usage_is_told(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_disk_that_is_full_is_told(
    called: Callable[[], list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "{}"\n')
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(["history", "facts"]) == 2
        monkeypatch.undo()
    assert capsys.readouterr().err == "kubectl zerolayer: this can't be shown: No space left on device\n"


def test_a_character_that_the_terminal_has_not_is_another(
    called: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho \'{"status": {"phase": "a → b"}}\'\n')
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", shown)
    assert main(["status", "facts"]) == 0
    shown.seek(0)
    assert "a ? b" in shown.read()


def test_who_waits_for_an_update_that_a_person_has_to_decide_is_told_so(
    called: Callable[[], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = status_with(update_at(Step.AWAIT_PROMOTION))
    (tmp_path / "pool.json").write_text(json.dumps(body_with(status, update={"promotion": "Manual"})))
    (tmp_path / "kubectl").write_text(f'#!/bin/sh\ncat "{tmp_path}/pool.json"\n')

    assert main(["status", "facts", "--until-done"]) == 4
    assert "a person has to decide" in capsys.readouterr().err
