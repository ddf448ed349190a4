"""Reads the API server's audit log: who wrote what, and which grants were used."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_CONTROLLERS = "system:serviceaccount:kube-system:"


class Permission(NamedTuple):
    """A verb on a kind of resource, as RBAC names it: `deployments/scale` for a subresource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """Returns `verb resource.group`."""
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the API server.

    Attributes:
        user: full name, `system:serviceaccount:NAMESPACE:NAME` for a pod.
        permission: the verb and the kind of object.
        namespace: of the object, empty for cluster-scoped ones and lists over all namespaces.
        name: of the object, empty for lists and creations by generated name.
        code: HTTP status, 0 while a watch is still open.
        allowed: the authorizer's decision.
        at: when the API server received it.
        done_at: when it had answered, or began to where the answer is a watch.
        sent: the object in the request, where the cluster's audit policy keeps it.
        answered: the object in the answer, where the policy keeps that.
    """

    user: str
    permission: Permission
    namespace: str
    name: str
    code: int
    allowed: bool
    at: datetime
    done_at: datetime
    sent: Mapping[str, Any] | None = None
    answered: Mapping[str, Any] | None = None

    @property
    def used(self) -> set[Permission]:
        """What RBAC had to grant: an apply that makes the object needs `create` besides `patch`."""
        if self.permission.verb == "patch" and self.code == HTTPStatus.CREATED:
            return {self.permission, self.permission._replace(verb="create")}
        return {self.permission}


class AuditLog:
    """The log file of one API server, read from a mark on."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> int:
        """Returns the present end of the log, for `calls(since=…)`."""
        return self._path.stat().st_size

    def calls(self, *, user: str | None = None, since: int = 0) -> list[Call]:
        """Returns the requests of one user, or of all, that began after the mark."""
        with self._path.open("rb") as log:
            log.seek(since)
            return list(_calls(log, user))

    def writers(self, resource: str, name: str, *, since: int = 0) -> set[str]:
        """Returns who wrote an object after the mark, but for the controllers of Kubernetes itself.

        Those write the status of autoscalers, and collect garbage.

        Args:
            resource: such as `horizontalpodautoscalers`; its subresources count, too.
            name: of the object, in whatever namespace.
            since: a mark.
        """
        users = {
            call.user
            for call in self.calls(since=since)
            if call.permission.verb in WRITES
            and call.permission.resource.partition("/")[0] == resource
            and call.name == name
        }
        return {user for user in users if not user.startswith(_CONTROLLERS)}


def granted(rules: Iterable[Mapping[str, Any]]) -> set[Permission]:
    """Returns the permissions that the rules of (cluster) roles give, one by one."""
    return {
        Permission(group, resource, verb)
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule.get("verbs", ())
    }


def _calls(lines: Iterable[bytes], user: str | None) -> Iterator[Call]:
    for line in lines:
        if not line.endswith(b"\n") or (user or "").encode() not in line:
            continue
        event = json.loads(line)
        if (
            user in {None, event["user"]["username"]}
            and "objectRef" in event
            and event["stage"] != "RequestReceived"
        ):
            yield _call(event)


def _call(event: Mapping[str, Any]) -> Call:
    reference = event["objectRef"]
    resource = "/".join(filter(None, (reference.get("resource", ""), reference.get("subresource", ""))))
    return Call(
        user=event["user"]["username"],
        permission=Permission(reference.get("apiGroup", ""), resource, event["verb"]),
        namespace=reference.get("namespace", ""),
        name=reference.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        allowed=event.get("annotations", {}).get("authorization.k8s.io/decision", "allow") == "allow",
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        done_at=datetime.fromisoformat(event["stageTimestamp"]),
        sent=event.get("requestObject"),
        answered=event.get("responseObject"),
    )
