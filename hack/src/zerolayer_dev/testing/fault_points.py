"""The points at which an operator can be killed in the course of an update, each visited."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from zerolayer_dev.testing.fatal_proxy import Call, Moment

_VOLATILE: Final = re.compile(
    r'\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+]00:00)|"(?:duration|p\d+)Seconds": \d+|"resourceVersion": "\d*"'
)
_PASSING: Final = frozenset({"resourceVersion", "continue", "limit", "timeoutSeconds"})
_MOST: Final = 3000


class EveryCall:
    """Kills before and after every call that is made in a step of an update, once each.

    After each kill the operator starts anew, and comes by the same call again: then it is passed on, and the
    operator is killed of its answer. Only then it may go on to the next one. Nothing is left out: not what an
    operator reads when it starts, nor its watches and its Lease. A call is the same as another if it is made
    in the same step and asks for the same, but for times and versions.

    Attributes:
        armed: whether anything is fatal yet.
        writes: points before and after writes at which it was killed.
        reads: such points of reads.
    """

    def __init__(self) -> None:
        self._visited: set[tuple[str, Moment]] = set()
        self._stage = ""
        self.armed = False
        self.writes = 0
        self.reads = 0

    def is_fatal(self, call: Call, moment: Moment, *, alive: bool = True) -> bool:
        """Whether the operator dies now.

        Raises:
            RuntimeError: it died so often that it gets nowhere.
        """
        if not self.armed:
            return False
        point = (f"{self._stage} {_same(call)}", moment)
        if moment is Moment.AFTER:
            self._stage = _stage(call) or self._stage
        if not alive or point in self._visited:
            return False
        if len(self._visited) == _MOST:
            raise RuntimeError(f"killed {_MOST} times; now it makes {call}")
        self._visited.add(point)
        if call.writes:
            self.writes += 1
        else:
            self.reads += 1
        return True


class EveryWrite(EveryCall):
    """The same of writes alone, for a pool that is asked meanwhile.

    Its status tells ever other figures: writes of it that differ in nothing else are the same. The operator's
    Lease is left out, as reads are: what users notice is what it changes.
    """

    def is_fatal(self, call: Call, moment: Moment, *, alive: bool = True) -> bool:
        """Whether the operator dies now."""
        if not call.writes or call.renews:
            return False
        return super().is_fatal(replace(call, body=_without_figures(call)), moment, alive=alive)


class NoCall(EveryCall):
    """Kills at no call."""

    def is_fatal(self, call: Call, moment: Moment, *, alive: bool = True) -> bool:  # noqa: ARG002 - that of the others
        """Whether the operator dies now: never."""
        return False


def _without_figures(call: Call) -> Mapping[str, Any]:
    """What a call asks for, without what is measured where it is about a status."""
    if _kind(call.path) != "zerolayerpools/status":
        return call.body
    status = call.body["status"]
    update = status.get("update", {})
    told = {
        "phase": status.get("phase"),
        "servingRevision": status.get("servingRevision"),
        "history": [
            {"toRevision": entry["toRevision"], "end": entry["end"]} for entry in status.get("history", ())
        ],
        "failed": status.get("failed", {}).get("revision"),
        "update": {key: update[key] for key in ("step", "toRevision", "verdict", "reason") if key in update},
        "conditions": [
            {key: item[key] for key in ("type", "status", "reason")} for item in status.get("conditions", ())
        ],
    }
    return {"status": told}


def _same(call: Call) -> str:
    """What calls have in common that ask for the same."""
    name = str(call.body.get("metadata", {}).get("name", ""))
    told = name if _kind(call.path) == "events" else json.dumps(call.body, sort_keys=True)
    digest = hashlib.sha256(_VOLATILE.sub("", told).encode()).hexdigest()
    path, _, query = call.path.partition("?")
    asked = [part for part in query.split("&") if part.partition("=")[0] not in _PASSING]
    return f"{call.method} {path}?{'&'.join(sorted(asked))} {digest}"


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
