"""`make demo`, as a newcomer runs it."""

import re
import time

import pytest

from zerolayer_dev.testing.make import make
from zerolayer_dev.testing.traces import left, traces

CLUSTER_FOLDER = "/clusters/demo/"
PRINTED = [
    r"x-anthropic-sampling-intent: deterministic",
    r"x-anthropic-sampling-intent: creative",
    r"x-anthropic-layer-zero: true",
    r"smollm2 +1/1 +Ready",
    r"smollm2 +2/2 +Ready",
    r"deterministic: 1 distinct answer of 2",
    r"^total +[0-9.]+$",
]


@pytest.mark.long
@pytest.mark.promise("demo")
@pytest.mark.timeout(3600)
def test_demo_shows_a_pool_and_leaves_nothing(figures) -> None:
    """`make demo` shows answers, growth and shrinking, and `make demo-down` leaves nothing behind."""
    make("demo-down")
    before = traces(CLUSTER_FOLDER)
    began = time.monotonic()
    shown = make("demo")
    seconds = time.monotonic() - began
    removed = make("demo-down")
    missing = [line for line in PRINTED if not re.search(line, shown.stdout, re.MULTILINE)]

    stages = re.findall(r"^(\S.*?) {2,}([0-9]+\.[0-9])$", shown.stdout, re.MULTILINE)
    figures(seconds=seconds, **{name: float(taken) for name, taken in stages})
    assert shown.returncode == 0, shown.stdout[-4000:]
    assert missing == [], shown.stdout[-4000:]
    assert removed.returncode == 0, removed.stdout
    assert left(before, traces(CLUSTER_FOLDER)) == {}
