"""What the controller of HorizontalPodAutoscalers did, sync by sync: from the audit log and its own log."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from zerolayer_dev.testing.audit import Call
from zerolayer_dev.testing.metrics_api import Query

CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
_PROPOSED = "Proposing desired replicas"
_DONE = {"Successfully rescaled", "Decided not to scale"}

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "RequestResponse",
            "users": [CONTROLLER],
            "resources": [{"group": "*", "resources": ["*/scale"]}],
        },
        {"level": "None"},
    ],
}
LOG_FLAGS = ("--logging-format=json", "--v=4")
"""The controller manager's, so that its log tells about every sync."""


@dataclass(frozen=True, slots=True)
class Sync:
    """One look of the controller at one autoscaler; times in seconds since the epoch.

    Attributes:
        read_at: when the API server had told the target's scale, with which it begins.
        replicas: the scale's `spec.replicas`.
        existing: the scale's `status.replicas`.
        query: its query for the metric, the last one where the API server had to try again.
        proposed: what the controller says that the metric asks for; None where it had none.
        proposed_at: when it said so, just before it decided.
        wrote: the size that it set; None where it set none.
        done_at: when it said that it was through; None where it gave up or was ended before.
        conflicts: writes that the API server refused because the target had changed meanwhile.
    """

    read_at: float
    replicas: int
    existing: int
    query: Query | None = None
    proposed: int | None = None
    proposed_at: float | None = None
    wrote: int | None = None
    done_at: float | None = None
    conflicts: int = 0

    @property
    def size(self) -> int:
        """The target's size after it."""
        return self.replicas if self.wrote is None else self.wrote

    @property
    def at(self) -> float:
        """When the metric was answered; without a query, when it began."""
        return self.query.answered_at if self.query else self.read_at


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the controller's log."""

    at: float
    said: str
    size: int
    name: str


_Event = tuple[float, Call | Query | _Line]


def lives(
    calls: Iterable[Call], queries: Iterable[Query], log: Path, restarted_at: float
) -> dict[str, tuple[list[Sync], list[Sync]]]:
    """Returns every sync before and after a restart of the controller.

    Args:
        calls: the controller's requests for scales, from the audit log.
        queries: for metrics.
        log: the controller manager's, written with `LOG_FLAGS`.
        restarted_at: when it was ended, to be started again, in seconds since the epoch.

    Returns:
        Syncs by the autoscaler's name, which is also its target's and its metric's.
    """
    happened: dict[str, list[_Event]] = defaultdict(list)
    for call in calls:
        happened[call.name].append((call.at.timestamp(), call))
    for query in queries:
        happened[query.metric].append((query.at, query))
    for line in _lines(log):
        happened[line.name].append((line.at, line))
    return {name: _split(events, restarted_at) for name, events in happened.items()}


def _split(events: list[_Event], restarted_at: float) -> tuple[list[Sync], list[Sync]]:
    ordered = sorted(events, key=lambda event: event[0])
    before = [event for event in ordered if event[0] < restarted_at]
    return _of_one(before), _of_one(ordered[len(before) :])


def _of_one(events: list[_Event]) -> list[Sync]:
    found: list[Sync] = []
    refused = False
    for _, event in events:
        if isinstance(event, Call) and event.permission.verb == "get":
            if not refused and event.code == HTTPStatus.OK:  # else the controller tries again, or gives up
                found.append(_begun(event))
            refused = False
        elif found:
            found[-1] = _continued(found[-1], event)
            refused = isinstance(event, Call) and event.code == HTTPStatus.CONFLICT
    return found


def _begun(call: Call) -> Sync:
    scale = call.answered or {}
    sizes = (scale[part].get("replicas", 0) for part in ("spec", "status"))
    return Sync(call.done_at.timestamp(), *sizes)


def _continued(sync: Sync, event: Call | Query | _Line) -> Sync:
    if isinstance(event, Query):
        return replace(sync, query=event)
    if isinstance(event, _Line):
        if event.said == _PROPOSED:
            return replace(sync, proposed=event.size, proposed_at=event.at)
        return replace(sync, done_at=event.at)
    if event.code == HTTPStatus.CONFLICT:
        return replace(sync, conflicts=sync.conflicts + 1)
    return replace(sync, wrote=(event.sent or {})["spec"].get("replicas", 0))


def _lines(log: Path) -> Iterable[_Line]:
    for line in log.read_text().splitlines():
        if not line.startswith("{"):
            continue
        entry: dict[str, Any] = json.loads(line)
        if (said := entry["msg"]) == _PROPOSED or said in _DONE:
            target = entry.get("scaleTarget") or entry["HPA"]["name"]
            yield _Line(entry["ts"] / 1000, said, entry["desiredReplicas"], target.rpartition("/")[2])
