"""What becomes of a canary that is as good, and of one that is worse, on a real control plane."""

from collections.abc import Callable

import pytest

from zerolayer_dev.testing.simulated_answers import GOOD, Answers, Quality
from zerolayer_dev.testing.update_pool import UpdatedPool

OTHER = {"device": "cpu", "env": [{"name": "A", "value": "1"}]}
QUICK = {
    "strategy": "Canary",
    "soak": "20s",
    "maxSoak": "60s",
    "minSamples": 100,
    "blueRetention": "3s",
    "failedRetention": "2s",
}
Make = Callable[..., UpdatedPool]


def change(pool: UpdatedPool, answers: Answers, quality: Quality = GOOD) -> str:
    """Changes a pool's revision to one that answers in a way; returns the one that serves."""
    blue = pool.status["servingRevision"]
    answers.known, answers.others = {blue}, quality
    pool.change(worker=OTHER)
    return blue


@pytest.fixture
def pool(make: Make) -> UpdatedPool:
    made = make(replicas=9, update=QUICK)
    made.wait_workers(9)
    return made


def test_canary_that_is_as_good_takes_over(pool: UpdatedPool, answers: Answers, figures) -> None:
    blue = change(pool, answers)
    soaking = pool.wait_step("Soak")
    green = soaking["toRevision"]
    assert soaking["fromRevision"] == blue

    entry = pool.wait_over()

    figures(samples=entry["samples"], seconds=entry["durationSeconds"])
    assert (entry["end"], entry["reason"], entry["decidedBy"]) == ("Promoted", "NoWorse", "verdict")
    assert pool.status["servingRevision"] == green
    pool.wait(pool.sizes_of, lambda seen: seen == {green: 9}, what="green alone", seconds=30)


@pytest.mark.parametrize(
    ("quality", "reason"),
    [
        (Quality(errors=0.05), "ErrorRateHigher"),
        (Quality(slower=3.0), "FirstTokenSlower"),
        (Quality(different=0.1), "NotDeterministic"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_canary_that_is_worse_is_left(
    pool: UpdatedPool, answers: Answers, quality: Quality, reason: str, figures
) -> None:
    blue = change(pool, answers, quality)

    entry = pool.wait_over()

    figures(reason=entry["reason"], samples=entry["samples"], seconds=entry["durationSeconds"])
    assert (entry["end"], entry["reason"], entry["decidedBy"]) == ("RolledBack", reason, "verdict")
    status = pool.status
    assert status["servingRevision"] == blue
    assert status["failed"]["revision"] == entry["toRevision"]
    assert pool.condition("Degraded")["reason"] == reason
    pool.wait(pool.sizes_of, lambda seen: seen == {blue: 9}, what="green to be gone", seconds=30)
    assert pool.update == {}


def test_no_verdict_without_enough_answers(make: Make, answers: Answers, figures) -> None:
    pool = make(replicas=9, update={**QUICK, "soak": "5s", "maxSoak": "15s"})
    pool.wait_workers(9)
    change(pool, answers, Quality(per_s=2.0, errors=0.5))

    entry = pool.wait_over()

    figures(reason=entry["reason"], samples=entry["samples"])
    assert (entry["end"], entry["reason"]) == ("RolledBack", "TooFewSamples")
    assert entry["samples"] < 100
