from pathlib import Path

import pytest

from zerolayer_dev.demo import counted
from zerolayer_dev.demo.clients import Clients
from zerolayer_dev.demo.timeline import Count, Moment
from zerolayer_dev.testing.askers import Answer, Question

MOMENTS = [Moment(float(at), "", "", "", "", "b1", {"b1": 100}, {"b1": 1}) for at in range(20)]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(counted, "repo_root", lambda: tmp_path)
    return tmp_path


def clients(*answers: Answer) -> Clients:
    return Clients("http://gate", Question("model"), unpinned=list(answers))


def test_counts_are_said_in_words() -> None:
    found = Count(120, 0, {"c1": 10, "d1": 0}, {"c1": 40, "d1": 0}, conversations=9, mixed=2, untold=0)

    assert list(counted.lines(found, {"c1": "v1"})) == [
        "120 requests, 0 failed",
        "canary v1: 10 of 40 requests that named no revision, 25 %",
        "canary d1: 0 of 0 requests that named no revision, 0 %",
        "9 conversations, 2 of them were moved to another revision; 2 of these were told so",
    ]


def test_picture_is_drawn_and_its_place_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counted.show(MOMENTS, clients(Answer(1, 2, "b1")))

    assert (root / counted.PICTURE).read_bytes().startswith(b"\x89PNG")
    assert f"the picture of all this: {root / counted.PICTURE}" in capsys.readouterr().out


def test_failed_requests_fail_the_demo_once_all_is_said(root: Path) -> None:
    with pytest.raises(RuntimeError, match="1 requests failed"):
        counted.show(MOMENTS, clients(Answer(1, 2, failure="503: away")))

    assert (root / counted.PICTURE).exists()
