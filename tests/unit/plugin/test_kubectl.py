"""How kubectl's output is read."""

import io
import json

import pytest

from zerolayer_kubectl.kubectl import Kubectl, KubectlError, changes, failure


def test_a_watch_is_read_event_by_event() -> None:
    events = [{"type": "ADDED", "object": {"a": {"b": "}\n{"}}}, {"type": "DELETED", "object": {}}]
    printed = "".join(json.dumps(event) + "\n" for event in events)

    assert list(changes(io.StringIO(printed))) == events


def test_an_event_that_a_dying_watch_leaves_half_printed_is_dropped() -> None:
    assert list(changes(io.StringIO('{"type": "ADDED"}\n{"type":'))) == [{"type": "ADDED"}]


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
