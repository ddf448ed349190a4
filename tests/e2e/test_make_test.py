"""`make test`, as somebody runs it who has the checkout and nothing else, and once more."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zerolayer_dev.paths import cache_dir, repo_root

# Every cache that a build fills; all of them begin empty.
CACHES = {"ZEROLAYER_CACHE": "zerolayer", "GOCACHE": "go", "GOMODCACHE": "modules", "UV_CACHE_DIR": "uv"}
# What this test's own run set for itself.
INHERITED = ("VIRTUAL_ENV", "PYTEST_", "MAKE", "MFLAGS")
KINDS = {"unit", "chart", "model", "integration", "e2e"}


@pytest.fixture
def bare_clone() -> Iterator[Path]:
    """The committed tree in a folder of its own, beside the caches: those of images need a real disk."""
    with tempfile.TemporaryDirectory(prefix="make-test-", dir=cache_dir().parent) as folder:
        clone = Path(folder) / "checkout"
        subprocess.run(["git", "clone", "--quiet", str(repo_root()), str(clone)], check=True)
        yield clone


def make_test(clone: Path) -> tuple[float, str]:
    """Runs `make test` in a clone with the caches beside it; returns its seconds and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
    environment |= {variable: str(clone.parent / name) for variable, name in CACHES.items()}
    log = clone.parent / "log"
    began = time.monotonic()
    with log.open("w") as output:
        ran = subprocess.run(
            ["make", "test"], cwd=clone, env=environment, check=False, stdout=output, stderr=output
        )
    seconds = time.monotonic() - began
    printed = log.read_text(errors="replace")
    assert ran.returncode == 0, printed[-20000:]
    return seconds, printed


def counts(printed: str) -> dict[str, str]:
    """Returns what the closing table says of each kind of test: `12 passed`."""
    return dict(re.findall(r"^(\w+): (\d+ .+) in [0-9.]+ s$", printed, re.MULTILINE))


def seed(printed: str) -> str:
    """Returns the seed of the tests' random order."""
    return re.findall(r"^Using --randomly-seed=(\d+)$", printed, re.MULTILINE)[0]


@pytest.mark.long
@pytest.mark.promise("test")
@pytest.mark.timeout(3 * 3600)
def test_make_test_is_green_from_nothing_and_again(bare_clone: Path, figures) -> None:
    """`make test` is green from a bare clone with empty caches, and again, each in a random order."""
    for caches in ("empty", "filled"):
        seconds, printed = make_test(bare_clone)
        ran = counts(printed)
        free = shutil.disk_usage(bare_clone).free / 2**30
        figures(caches=caches, minutes=seconds / 60, seed=seed(printed), **ran, disk_free_gib=free)

        assert ran.keys() == KINDS
        assert all(re.fullmatch(r"[1-9]\d* passed", found) for found in ran.values()), ran
