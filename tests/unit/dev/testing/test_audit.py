import json
from pathlib import Path
from typing import Any

from zerolayer_dev.testing.audit import AuditLog, Permission, granted

OPERATOR = "system:serviceaccount:zerolayer-system:zerolayer"


def event(verb: str = "patch", user: str = OPERATOR, **changes: Any) -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.678901Z",
        "stageTimestamp": "2026-01-02T03:04:05.700000Z",
        "objectRef": {"apiGroup": "apps", "resource": "deployments", "namespace": "n", "name": "d"},
        "responseStatus": {"code": 200},
        "annotations": {"authorization.k8s.io/decision": "allow"},
    } | changes


def log(tmp_path: Path, *events: dict[str, Any]) -> AuditLog:
    path = tmp_path / "audit.log"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in events))
    return AuditLog(path)


def test_calls_are_those_of_the_user_with_what_rbac_had_to_allow(tmp_path: Path) -> None:
    scale = {"apiGroup": "apps", "resource": "deployments", "subresource": "scale"}
    audit = log(tmp_path, event(user="someone"), event(stage="RequestReceived"), event(objectRef=scale))

    (call,) = audit.calls(user=OPERATOR)

    assert call.permission == Permission("apps", "deployments/scale", "patch")
    assert (call.code, call.allowed, call.name) == (200, True, "")


def test_an_apply_that_makes_the_object_uses_create_too(tmp_path: Path) -> None:
    made, changed = log(tmp_path, event(responseStatus={"code": 201}), event()).calls(user=OPERATOR)

    assert {permission.verb for permission in made.used} == {"create", "patch"}
    assert {permission.verb for permission in changed.used} == {"patch"}


def test_denied_calls_are_told_apart(tmp_path: Path) -> None:
    denied = event(annotations={"authorization.k8s.io/decision": "forbid"}, responseStatus={"code": 403})

    (call,) = log(tmp_path, denied).calls(user=OPERATOR)

    assert not call.allowed


def test_objects_are_there_where_the_policy_keeps_them(tmp_path: Path) -> None:
    kept, bare = log(tmp_path, event(requestObject={"a": 1}, responseObject={"b": 2}), event()).calls(
        user=OPERATOR
    )

    assert (kept.sent, kept.answered) == ({"a": 1}, {"b": 2})
    assert (bare.sent, bare.answered) == (None, None)


def test_only_what_follows_the_mark_counts(tmp_path: Path) -> None:
    audit = log(tmp_path, event("create"))
    mark = audit.mark()
    with (tmp_path / "audit.log").open("a") as file:
        file.write(json.dumps(event("delete")) + "\n" + json.dumps(event("update")))

    assert [call.permission.verb for call in audit.calls(user=OPERATOR, since=mark)] == ["delete"]


def test_requests_for_no_object_are_left_out(tmp_path: Path) -> None:
    discovery = event("get")
    del discovery["objectRef"]

    assert log(tmp_path, discovery).calls(user=OPERATOR) == []


def test_rules_are_multiplied_out() -> None:
    rules = [
        {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "list"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]

    assert granted(rules) == {
        Permission("", "pods", "get"),
        Permission("", "pods", "list"),
        Permission("apps", "pods", "get"),
        Permission("apps", "pods", "list"),
    }
    assert str(Permission("apps", "deployments/scale", "update")) == "update deployments/scale.apps"


def test_writers_of_an_object_are_whoever_wrote_it_or_a_part_of_it(tmp_path: Path) -> None:
    scale = {"apiGroup": "apps", "resource": "deployments", "subresource": "scale", "name": "d"}
    other = {"apiGroup": "apps", "resource": "deployments", "name": "other"}
    audit = log(
        tmp_path,
        event(),
        event(user="by-a-part", objectRef=scale),
        event("get", user="reader"),
        event(user="of-another", objectRef=other),
        event("update", user="system:serviceaccount:kube-system:deployment-controller"),
    )

    assert audit.writers("deployments", "d") == {OPERATOR, "by-a-part"}
    assert audit.writers("pods", "d") == set()
