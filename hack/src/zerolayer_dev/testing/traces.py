"""What a cluster could leave on the machine, for comparing before and after."""

from collections.abc import Iterator
from pathlib import Path

Traces = dict[str, set[str]]


def traces(marker: str) -> Traces:
    """Returns what is there now.

    Args:
        marker: processes and mounts count when they mention it, such as `/clusters/demo/`.
    """
    return {
        "interfaces": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": {line for line in Path("/proc/mounts").read_text().splitlines() if marker in line},
        "processes": {command for command in _read("cmdline") if marker in command},
        "network namespaces": set(_links("ns/net")),
        "control groups": {str(path) for path in Path("/sys/fs/cgroup").glob("**/*zerolayer*")},
    }


def left(before: Traces, after: Traces) -> Traces:
    """Returns what `after` has and `before` has not, by kind; empty where nothing was left."""
    return {kind: new for kind in after if (new := after[kind] - before[kind])}


def _read(name: str) -> Iterator[str]:
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        try:
            yield path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue  # it ended meanwhile


def _links(name: str) -> Iterator[str]:
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        try:
            yield str(path.readlink())
        except OSError:
            continue  # it ended meanwhile
