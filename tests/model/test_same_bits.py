"""A token's scores have the same bits in any company, with any prefix hits, and in any process."""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from zerolayer_dev.testing.score_bits import KINDS, Course, Outcome, Round, differing, follow, follow_afresh

pytestmark = [pytest.mark.promise("determinism")]

CHUNK = 128
SAMPLE = (5, 31, 64, 128, 129, 200, 389, 1500)
WHOLE = (*SAMPLE, 12, 65, 100, 127, 256, 257, 640, 1000)
BATCHES = (1, 2, 3, 4, 5, 7, 8, 16)


@pytest.mark.timeout(600)
def test_alone_in_a_batch_and_after_a_restart(demo_model: Path, figures: Callable[..., None]) -> None:
    """8 prompts of 5 to 1 500 tokens: scores have the same bits alone, in a batch, restarted, with hits."""
    settings = {**KINDS["fp32"], "max_batch_size": 8, "kv_cache_tokens": 3072}
    alone = Course([Round("none", 1)], SAMPLE, settings)
    together = Course([Round("none", 8), Round("hit", 8)], SAMPLE, settings)
    compare(demo_model, [alone, together], "fp32", figures)


@pytest.mark.timeout(600)
def test_after_others_took_the_pages(demo_model: Path, figures: Callable[..., None]) -> None:
    """Weights of 8 bits: the same bits alone, in a batch after its pages were taken, and with hits."""
    settings = {**KINDS["int8"], "max_batch_size": 8, "kv_cache_tokens": 1280}
    rounds = [Round("none", 1), Round("evicted", 7, fillers=3), Round("hit", 7)]
    compare(demo_model, [Course(rounds, SAMPLE[:-1], settings)], "int8", figures)


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("kind", KINDS)
def test_whole_grid(kind: str, demo_model: Path, figures: Callable[..., None]) -> None:
    """The same with 16 prompts of 5 to 1 500 tokens in batches of 8 sizes, each size in its own process."""
    settings = {**KINDS[kind], "max_batch_size": max(BATCHES), "kv_cache_tokens": 6144}
    courses = [
        Course(
            [Round("none", batch), Round("hit", batch), Round("evicted", batch, fillers=5)],
            random.Random(batch).sample(WHOLE, len(WHOLE)),
            settings,
            # Prompts get their first tokens one by one: the first is still there when the last has its own.
            tokens=max(BATCHES) + 4,
        )
        for batch in BATCHES
    ]
    compare(demo_model, courses, kind, figures)


def test_preemption_changes_no_bit(demo_model: Path, figures: Callable[..., None]) -> None:
    """Answers that have to give their pages up half-way, and take up again, keep the bits they have alone."""
    settings = {**KINDS["fp32"], "max_batch_size": 4, "kv_cache_tokens": 160}
    course = Course([Round("alone", 1), Round("crowd", 4)], (20, 31, 40, 60), settings, tokens=16)
    outcome = follow(demo_model, course)
    reference, found = outcome.rounds["alone"].bits, outcome.rounds["crowd"].bits
    figures(preemptions=outcome.preemptions, compared=len(found))
    assert outcome.preemptions > 0
    assert differing(reference, found) == []


def compare(model: Path, courses: Sequence[Course], kind: str, figures: Callable[..., None]) -> None:
    """Follows each course in a process of its own; the first round of the first is the reference."""
    began = time.monotonic()
    outcomes = follow_afresh(model, courses, at_once=2)
    reference = outcomes[0].rounds["none"].bits
    rounds = [seen for outcome in outcomes for seen in outcome.rounds.values()]
    different = [key for seen in rounds for key in differing(reference, seen.bits)]
    figures(
        weights=kind,
        kernels=outcomes[0].kernels,
        batches=sorted({each.batch for course in courses for each in course.rounds}),
        prompts=len(courses[0].lengths),
        processes=len(outcomes),
        compared=sum(len(seen.bits) for seen in rounds),
        different=len(different),
        seconds=round(time.monotonic() - began, 1),
    )
    assert different == []
    assert len({outcome.fingerprint for outcome in outcomes}) == 1
    for course, outcome in zip(courses, outcomes, strict=True):
        check(course, outcome)


def check(course: Course, outcome: Outcome) -> None:
    """The rounds were what they are called: so many tokens in a step, and so many of a prompt cached."""
    whole = {str(length): (length - 1) // CHUNK * CHUNK for length in course.lengths}
    assert max(seen.rows for seen in outcome.rounds.values()) == max(each.batch for each in course.rounds)
    for name, seen in outcome.rounds.items():
        match name:
            case "none":
                assert set(seen.cached.values()) == {0}
            case "hit":
                assert seen.cached == whole
            case _:
                assert [key for key, most in whole.items() if most and seen.cached[key] >= most] == []
