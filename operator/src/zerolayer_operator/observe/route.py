"""What a pool's HTTPRoute says, and what its gateways make of it; no I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import HTTP_ROUTE
from zerolayer_operator.observe.access import items, section, timestamp
from zerolayer_operator.observe.state import ChildKey, Object, ObservedPool

_ACCEPTED = "Accepted"
_RESOLVED = "ResolvedRefs"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateways that are named by one reference say of the route as it stands.

    Attributes:
        gateway: The Gateway, as ``namespace/name``.
        taken: Whether one of them leads requests by it; ``None`` while none has looked at it as it stands.
        reason: Why not, in one word.
        message: The same in a sentence; may be empty.
        since: Since when.
    """

    gateway: str
    taken: bool | None = None
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LiveRoute:
    """A pool's HTTPRoute as it is.

    Attributes:
        shares: Percent of the requests that name no revision, by the revision that gets them.
        pinned: Revisions that requests may name.
        backends: Every Service that it leads requests to.
        applied_at: When the operator last changed it.
        answers: What the gateways say, by the references of its spec.
    """

    shares: Mapping[str, int]
    pinned: frozenset[str]
    backends: frozenset[str]
    applied_at: datetime | None
    answers: tuple[Answer, ...]

    @property
    def in_force(self) -> bool:
        """Whether every gateway leads requests by the route as it stands."""
        return bool(self.answers) and all(answer.taken for answer in self.answers)


def live_route(pool: ObservedPool) -> LiveRoute | None:
    """The pool's route; ``None`` where there is none, or none can be looked at."""
    body = pool.children.get(ChildKey(HTTP_ROUTE.kind, pool.name))
    if body is None or "deletionTimestamp" in body["metadata"]:
        return None
    named, rest = _rules(body)
    revision_of = {
        names.revision_service_name(pool.name, item.revision): item.revision for item in pool.deployments
    }
    weights = {str(item.get("name")): _weight(item) for item in rest}
    total = sum(weights.values())
    return LiveRoute(
        shares={
            revision_of[name]: round(100 * weight / total)
            for name, weight in weights.items()
            if name in revision_of and total
        },
        pinned=frozenset(revision_of[name] for name in named if name in revision_of),
        backends=frozenset((*named, *weights)),
        applied_at=_applied_at(body),
        answers=tuple(_answer(body, reference) for reference in items(body, "spec", "parentRefs")),
    )


def _rules(body: Object) -> tuple[frozenset[str], list[Object]]:
    """The Services that requests can name, and the backends of those that name nothing."""
    named: set[str] = set()
    rest: list[Object] = []
    for rule in items(body, "spec", "rules"):
        backends = items(rule, "backendRefs")
        if any(items(match, "headers") for match in items(rule, "matches")):
            named.update(str(item.get("name")) for item in backends)
        else:
            rest = rest or backends
    return frozenset(named), rest


def _weight(backend: Object) -> int:
    weight = backend.get("weight", 1)
    return weight if isinstance(weight, int) else 1


def _applied_at(body: Object) -> datetime | None:
    own = [
        entry.get("time")
        for entry in items(body, "metadata", "managedFields")
        if entry.get("manager") == names.FIELD_MANAGER and not entry.get("subresource")
    ]
    return timestamp(own[0] if own else section(body, "metadata").get("creationTimestamp"))


def _answer(body: Object, reference: Object) -> Answer:
    gateway = f"{_where(body, reference)}/{reference.get('name')}"
    said = [
        _verdict(gateway, conditions)
        for parent in items(body, "status", "parents")
        if _same(body, section(parent, "parentRef"), reference)
        for conditions in [dict(_current(body, parent))]
        if _ACCEPTED in conditions
    ]
    # Of several controllers one that leads requests is enough.
    return next((answer for answer in said if answer.taken), said[0] if said else Answer(gateway))


def _verdict(gateway: str, conditions: Mapping[str, Object]) -> Answer:
    for kind in (_ACCEPTED, _RESOLVED):
        condition = conditions.get(kind, {})
        if condition and condition.get("status") != "True":
            reason, message = (str(condition.get(key) or "") for key in ("reason", "message"))
            since = timestamp(condition.get("lastTransitionTime"))
            return Answer(gateway, taken=False, reason=reason, message=message, since=since)
    return Answer(gateway, taken=True)


def _current(body: Object, parent: Object) -> Iterator[tuple[str, Object]]:
    """The conditions that are about the route as it stands now, by type."""
    for condition in items(parent, "conditions"):
        if condition.get("observedGeneration", 0) >= section(body, "metadata").get("generation", 0):
            yield str(condition.get("type")), condition


def _same(body: Object, left: Object, right: Object) -> bool:
    keys = ("name", "sectionName", "port")
    return _where(body, left) == _where(body, right) and all(left.get(key) == right.get(key) for key in keys)


def _where(body: Object, reference: Object) -> str:
    return str(reference.get("namespace") or section(body, "metadata").get("namespace"))
