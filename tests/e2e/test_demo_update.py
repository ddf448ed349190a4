"""`make demo-update`, as a newcomer runs it."""

import re
import time

import pytest

from zerolayer_dev.demo.counted import PICTURE
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.make import make
from zerolayer_dev.testing.traces import left, traces

CLUSTER_FOLDER = "/clusters/demo/"
PRINTED = [
    r"^Torsund is not in the answer$",
    r"^< x-zero-layer-anchor: v1$",
    r"^Torsund is in the answer$",
    r"^Paris is in the answer$",
    r"^perplexity ratio [0-9.]+$",
    r"Promoted",
    r"RolledBack",
    r"WrongAnswers",
    r"^[0-9]+ requests, 0 failed$",
    r"^total +[0-9.]+$",
]


@pytest.mark.long
@pytest.mark.promise("demo-update")
@pytest.mark.timeout(3600)
def test_demo_shows_a_promotion_and_a_roll_back_and_leaves_nothing(figures) -> None:
    """`make demo-update` promotes right facts, rolls wrong ones back, and loses no request."""
    make("demo-down")
    picture = repo_root() / PICTURE
    picture.unlink(missing_ok=True)
    before = traces(CLUSTER_FOLDER)
    began = time.monotonic()
    shown = make("demo-update")
    seconds = time.monotonic() - began
    removed = make("demo-down")
    missing = [line for line in PRINTED if not re.search(line, shown.stdout, re.MULTILINE)]

    stages = re.findall(r"^(\S.*?) {2,}([0-9]+\.[0-9])$", shown.stdout, re.MULTILINE)
    counts = re.search(r"^([0-9]+) requests, ([0-9]+) failed$", shown.stdout, re.MULTILINE)
    figures(
        seconds=seconds,
        requests=int(counts[1]) if counts else 0,
        failed=int(counts[2]) if counts else 0,
        **{name: float(taken) for name, taken in stages},
    )
    assert shown.returncode == 0, shown.stdout[-4000:]
    assert missing == [], shown.stdout[-4000:]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert removed.returncode == 0, removed.stdout
    assert left(before, traces(CLUSTER_FOLDER)) == {}
