"""What the supervisor is told to do: plain data that crosses the namespaces' border as JSON.

The supervisor is process 1 of the cluster's namespaces and imports as little as
it can, so this module holds no third-party import.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Probe:
    """How to tell that a component is ready.

    Attributes:
        kind: `tcp` (target is `host:port`), `https` (target is a URL that answers 200),
            `socket` (target is the path of a Unix socket that accepts), or `exit` (the
            component is a task that ends with status 0).
        target: see `kind`.
        ca: for `https`, the certificate authority to trust.
    """

    kind: str
    target: str = ""
    ca: str = ""


@dataclass(frozen=True)
class Component:
    """One program that the supervisor keeps running.

    Attributes:
        name: of the component and of its log file.
        command: absolute path and arguments.
        probe: readiness; None is ready once started.
        needs: components that must be ready before this one starts.
    """

    name: str
    command: tuple[str, ...]
    probe: Probe | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mount:
    """A mount inside the namespaces: a folder or file over another, or a fresh tmpfs without a source."""

    target: str
    source: str | None = None


@dataclass(frozen=True)
class Plan:
    """Everything the supervisor needs to know.

    Attributes:
        hostname: of the namespaces.
        address: of the cluster's end of the link, with prefix length.
        services: range of the ClusterIPs.
        mounts: made in this order.
        path: the components' PATH.
        logs: folder of the log files.
        control: path of the control socket.
        components: started as soon as what they need is ready.
        lifeline: descriptor of a pipe; the cluster ends once nobody holds its other end.
    """

    hostname: str
    address: str
    services: str
    path: str
    logs: str
    control: str
    components: tuple[Component, ...]
    mounts: tuple[Mount, ...] = field(default_factory=tuple)
    lifeline: int | None = None

    def write(self, path: Path) -> None:
        """Write the plan as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2))

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Return the plan written at a path."""
        content: dict[str, Any] = json.loads(path.read_text())
        components = tuple(_component(item) for item in content.pop("components"))
        mounts = tuple(Mount(**item) for item in content.pop("mounts"))
        return cls(components=components, mounts=mounts, **content)


def _component(item: dict[str, Any]) -> Component:
    probe = item["probe"]
    return Component(
        name=item["name"],
        command=tuple(item["command"]),
        probe=Probe(**probe) if probe else None,
        needs=tuple(item["needs"]),
    )
