"""The points at which an operator can be killed in the course of an update, each visited."""

import hashlib
import json
import re
from collections import Counter
from typing import Final

from zerolayer_dev.testing.fatal_proxy import Call, Moment

_VOLATILE: Final = re.compile(r'\d{4}-\d\d-\d\dT[0-9:.]+Z|"durationSeconds": \d+|"p\d+Seconds": \d+')
_MOST: Final = 500


class EveryCall:
    """Kills before and after every write that is made in a step of an update, once each.

    After each kill the operator starts anew, and comes by the same write again: then it is passed on, and
    the operator is killed of its answer. Only then it may go on to the next one. A write is the same as
    another if it is made in the same step and asks for the same, but for times. Reads are left out: killed
    around one, the operator leaves what it leaves killed after the write before. So is its Lease, which it
    renews by the clock.

    Attributes:
        armed: whether anything is fatal yet.
        points: writes before and after which it was killed, by what they write.
        kills: how often it was killed.
    """

    def __init__(self) -> None:
        self._visited: set[tuple[str, Moment]] = set()
        self._stage = ""
        self.armed = False
        self.points: Counter[str] = Counter()
        self.kills = 0

    def is_fatal(self, call: Call, moment: Moment) -> bool:
        """Whether the operator dies now.

        Raises:
            RuntimeError: it died so often that it gets nowhere.
        """
        if not self.armed or not call.writes:
            return False
        point = (f"{self._stage} {_same(call)}", moment)
        if moment is Moment.AFTER:
            self._stage = _stage(call) or self._stage
        if point in self._visited:
            return False
        self._visited.add(point)
        self.kills += 1
        if self.kills > _MOST:
            raise RuntimeError(f"killed {_MOST} times; the last calls are {self.points}")
        if moment is Moment.AFTER:
            self.points[f"{call.method} {_kind(call.path)}"] += 1
        return True


class NoCall(EveryCall):
    """Kills at no call."""

    def is_fatal(self, call: Call, moment: Moment) -> bool:  # noqa: ARG002 - that of the others
        """Whether the operator dies now: never."""
        return False


def _same(call: Call) -> str:
    """What calls have in common that ask for the same."""
    name = str(call.body.get("metadata", {}).get("name", ""))
    told = name if _kind(call.path) == "events" else json.dumps(call.body, sort_keys=True)
    digest = hashlib.sha256(_VOLATILE.sub("", told).encode()).hexdigest()
    return f"{call.method} {call.path} {digest}"


def _stage(call: Call) -> str:
    """The step of the update that the pool is in once a status is written; empty where none was."""
    ok = 200 <= call.status < 300  # noqa: PLR2004 - what HTTP calls success
    if not ok or _kind(call.path) != "zerolayerpools/status":
        return ""
    status = call.body["status"]
    update = status.get("update", {})
    return "/".join(
        (str(len(status.get("history", ()))), update.get("toRevision", ""), update.get("step", "none"))
    )


def _kind(path: str) -> str:
    """The resource, with its subresource: `deployments/scale`."""
    parts = path.partition("?")[0].split("/")
    rest = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else parts[-1:]
    return "/".join((*rest[:1], *rest[2:]))
