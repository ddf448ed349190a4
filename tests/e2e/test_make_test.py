"""`make test`, as somebody runs it who has the checkout and nothing else, and once more."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from zerolayer_dev.paths import cache_dir, repo_root

# What a build or a test run fills.
CACHES = {"ZEROLAYER_CACHE": "zerolayer", "GOCACHE": "go", "GOMODCACHE": "modules", "UV_CACHE_DIR": "uv"}
# What this test's own run set for itself; make hands its ARGS and NAME on to what it starts.
INHERITED = ("VIRTUAL_ENV", "PYTEST_", "MAKE", "MFLAGS", "ARGS", "NAME")
KINDS = {"unit", "chart", "model", "integration", "e2e"}

pytestmark = [pytest.mark.long, pytest.mark.promise("test"), pytest.mark.timeout(2 * 3600)]


@pytest.fixture
def clone() -> Iterator[Path]:
    """The committed tree in a folder with room beside it, on the disk of the caches."""
    with tempfile.TemporaryDirectory(prefix="make-test-", dir=cache_dir().parent) as folder:
        checkout = Path(folder) / "checkout"
        subprocess.run(["git", "clone", "--quiet", str(repo_root()), str(checkout)], check=True)
        yield checkout


def make_test(clone: Path, caches: Mapping[str, str], figures: Callable[..., None]) -> None:
    """Runs `make test` in a clone, keeps its figures, and checks that all kinds ran and all passed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
    log = clone.parent / "log"
    began = time.monotonic()
    with log.open("w") as output:
        ran = subprocess.run(
            ["make", "test"],
            cwd=clone,
            env=environment | caches,
            check=False,
            stdout=output,
            stderr=output,
        )
    minutes = (time.monotonic() - began) / 60
    printed = log.read_text(errors="replace")
    counts = dict(re.findall(r"^(\w+): (\d+ .+) in [0-9.]+ s$", printed, re.MULTILINE))
    seed = re.findall(r"^Using --randomly-seed=(\d+)$", printed, re.MULTILINE)
    free = shutil.disk_usage(clone).free / 2**30
    figures(minutes=minutes, random_seed=seed, **counts, disk_free_gib=free)

    assert ran.returncode == 0, printed[-20000:]
    assert counts.keys() == KINDS
    assert all(re.fullmatch(r"[1-9]\d* passed", found) for found in counts.values()), counts


def test_green_from_a_bare_clone_with_empty_caches(clone: Path, figures: Callable[..., None]) -> None:
    """`make test` is green from a bare clone with every cache empty, its tests in a random order."""
    make_test(clone, {variable: str(clone.parent / name) for variable, name in CACHES.items()}, figures)


def test_green_again_with_filled_caches(clone: Path, figures: Callable[..., None]) -> None:
    """`make test` is green again where everything is built already, in another random order."""
    make_test(clone, {}, figures)
