"""How changes are shown: in place on a terminal, elsewhere once each."""

import json

import pytest

from zerolayer_dev.testing.updating_pools import NOW, body_with, status_with, update_at
from zerolayer_kubectl import display
from zerolayer_kubectl.pool import read
from zerolayer_operator.api.update_status import Step

SOAK = read(body_with(status_with(update_at(Step.SOAK))), None)
MORE = read(body_with(status_with(update_at(Step.SOAK, samples=200))), None)


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "now", lambda: NOW)


def test_a_line_is_printed_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    shown = display.Lines()
    for pool in (SOAK, SOAK, MORE, MORE):
        shown.show(pool)

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("12:00:00 Soak: ")
    assert "after 200 answers" in second


def test_a_document_is_printed_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    shown = display.Documents()
    for pool in (SOAK, SOAK, MORE):
        shown.show(pool)

    assert [json.loads(line)["update"]["samples"] for line in capsys.readouterr().out.splitlines()] == [
        180,
        200,
    ]


def test_a_screen_is_drawn_over_and_trouble_stands_until_the_next_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = display.Screen()
    shown.show(SOAK)
    shown.trouble("no route to host")
    capsys.readouterr()
    shown.show(SOAK)
    troubled = capsys.readouterr().out
    shown.show(MORE)

    assert troubled.startswith("\x1b[HPOOL        facts in namespace team\x1b[K\n")
    assert "(no changes come through: no route to host)" in troubled
    assert "no route to host" not in capsys.readouterr().out
