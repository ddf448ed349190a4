"""How kubectl's output is read."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from zerolayer_kubectl.follow import Follower
from zerolayer_kubectl.kubectl import Kubectl, KubectlError, changes, failure


def test_a_watch_is_read_event_by_event() -> None:
    events = [{"type": "ADDED", "object": {"a": {"b": "}\n{"}}}, {"type": "DELETED", "object": {}}]
    printed = "".join(json.dumps(event) + "\n" for event in events)

    assert list(changes(io.StringIO(printed))) == events


def test_an_event_that_a_dying_watch_leaves_half_printed_is_dropped() -> None:
    assert list(changes(io.StringIO('{"type": "ADDED"}\n{"type":'))) == [{"type": "ADDED"}]


@pytest.mark.parametrize("line", ["nonsense", "[1]", "null", "[" * 100_000])
def test_what_is_no_event_is_told(line: str) -> None:
    """As a login helper may print it."""
    with pytest.raises(KubectlError, match="kubectl printed no JSON object, but ") as caught:
        list(changes(io.StringIO(f"{line}\n")))
    assert not caught.value.lasting
    assert len(str(caught.value)) < 200


@pytest.fixture
def printing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[bytes], Kubectl]:
    """A kubectl that prints the same whatever it is asked."""

    def make(printed: bytes) -> Kubectl:
        (tmp_path / "printed").write_bytes(printed)
        program = tmp_path / "kubectl"
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/printed\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        return Kubectl()

    return make


def test_kubectl_writes_utf8_whatever_the_terminal_does(
    printing: Callable[[bytes], Kubectl], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locale.getencoding", lambda: "ascii")
    assert printing('{"a": "300s → 120s"}'.encode()).pool("x") == {"a": "300s → 120s"}
    assert printing(b'{"a": "\xff"}').pool("x") == {"a": "\ufffd"}


def test_what_is_no_pool_is_told(printing: Callable[[bytes], Kubectl]) -> None:
    for printed in (b"", b"<html>", b"[]"):
        with pytest.raises(KubectlError, match="kubectl printed no JSON object"):
            printing(printed).pool("x")


@pytest.mark.timeout(20)
def test_a_watch_that_prints_nonsense_is_told_and_begun_anew(printing: Callable[[bytes], Kubectl]) -> None:
    kubectl, told = printing(b'{"metadata": {"name": "x"}}\n'), list[str]()
    with Follower(kubectl, "x", told.append) as follower:
        looks = follower.looks(0.1)
        next(looks)
        printing(b"nonsense\n")
        while len(told) < 1:
            next(looks)
        printing(b'{"type": "MODIFIED", "object": {"metadata": {"name": "y"}}}\n')
        while next(looks).name != "y":
            pass
    assert told == ["kubectl printed no JSON object, but 'nonsense'"]


@pytest.mark.parametrize(
    ("stderr", "message", "lasting"),
    [
        ('Error from server (NotFound): zlp "x" not found\n', 'zlp "x" not found', True),
        ('Error from server (Forbidden): zlp is forbidden: User "u"', 'zlp is forbidden: User "u"', True),
        ("E1130 memcache.go:265\nerror: You must be logged in", "You must be logged in", False),
        ("The connection to the server x was refused", "The connection to the server x was refused", False),
        (
            'error: the server doesn\'t have a resource type "zerolayerpools"',
            "this cluster knows no ZeroLayerPools: install the operator's chart, or name another --context",
            True,
        ),
        ("", "kubectl failed", False),
    ],
)
def test_kubectls_own_words_become_one_sentence(stderr: str, message: str, lasting: bool) -> None:
    error = failure(stderr)

    assert str(error) == message
    assert error.lasting == lasting


def test_without_kubectl_on_the_path_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(KubectlError, match="kubectl is not on the PATH"):
        Kubectl()
