import subprocess

import pytest

from zerolayer_dev.cluster.commands import CommandError, output


def test_output_is_returned() -> None:
    assert output(["cat"], stdin="hello") == "hello"


def test_nothing_is_read_from_the_terminal() -> None:
    assert output(["cat"]) == ""


def test_a_failure_holds_the_command_and_what_it_said() -> None:
    with pytest.raises(CommandError, match=r"sh -c 'echo no >&2; exit 3': status 3: no") as raised:
        output(["sh", "-c", "echo no >&2; exit 3"])
    assert raised.value.status == 3


def test_too_slow_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        output(["sleep", "1000"], timeout_s=0.1)
