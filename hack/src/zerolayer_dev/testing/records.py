"""The record of a promise's last run: `out/promises/<name>.json`."""

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TestRecord:
    """What one test of a promise showed; `seconds` covers set-up, call and teardown."""

    __test__ = False

    outcome: str
    seconds: float
    figures: list[Figures]
    commit: str
    machine: str
    date: str


def commit(root: Path) -> str:
    """Returns the short commit of `root`, with `+` where the tree differs from it."""
    try:
        head = _git(root, "rev-parse", "--short=10", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """Returns processor, cores and memory in one line, without names that identify the host."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = (
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if "model name" in line
        )
        model = next(names, model)
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} CPUs, {gibibytes:.0f} GiB, Python {platform.python_version()}"


def today() -> str:
    """Returns the date in UTC, `YYYY-MM-DD`."""
    return datetime.now(UTC).date().isoformat()


def load(path: Path) -> dict[str, TestRecord]:
    """Returns the record's tests by node id; empty where there is no record."""
    if not path.exists():
        return {}
    tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
    return {nodeid: TestRecord(**entry) for nodeid, entry in tests.items()}


def merge(path: Path, name: str, tests: dict[str, TestRecord]) -> None:
    """Writes `tests` into the record at `path`; entries of other tests stay as they were."""
    merged = load(path) | tests
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"promise": name, "tests": {nodeid: asdict(merged[nodeid]) for nodeid in sorted(merged)}}
    path.write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True)
    return run.stdout.strip()
