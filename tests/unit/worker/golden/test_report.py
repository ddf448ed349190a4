import json

import pytest

from zerolayer_worker.golden.asking import Answer
from zerolayer_worker.golden.items import Expectation, GoldenSet, Item
from zerolayer_worker.golden.report import MAX_BYTES, Asked, Findings
from zerolayer_worker.golden.similarity import Threshold, threshold

ITEMS = (
    Item(id="lake", prompt="q", expect=Expectation(contains=("Issen",)), change=True),
    Item(id="sky", prompt="q", change=False),
    Item(id="code", prompt="q", expect=Expectation(equals="7413"), change=False),
)
RIGHT = (Answer("Lake Issen"), Answer("It scatters."), Answer("7413"))


def side(*answers: Answer, again: tuple[Answer, ...] | None = None) -> Asked:
    return Asked(answers, again or answers)


def findings(blue: Asked, green: Asked, similar: dict[int, float]) -> Findings:
    return Findings(GoldenSet(ITEMS, "sha256:0"), blue, green, similar, Threshold(0.9, (0.9, 0.96)))


def test_all_is_counted_on_the_side_where_it_happened() -> None:
    blue = side(Answer("No idea"), RIGHT[1], RIGHT[2])
    green = side(RIGHT[0], Answer(error="500: broken"), RIGHT[2], again=(*RIGHT[:2], Answer("7414")))
    report = json.loads(findings(blue, green, {2: 1.0}).json())
    assert report["expected"] == 2
    assert report["blue"] == {"asked": 3, "hits": 1, "errors": 0, "repeatsDiffer": 0}
    assert report["green"] == {"asked": 3, "hits": 1, "errors": 1, "repeatsDiffer": 1}
    assert report["similarity"] == {
        "kept": 2,
        "compared": 1,
        "least": 1.0,
        "mean": 1.0,
        "threshold": 0.9,
        "below": 0,
        "calibration": {"pairs": 2, "least": 0.9, "mean": 0.93},
    }
    assert report["failing"] == [
        {"id": "sky", "why": "500: broken"},
        {"id": "code", "why": "two answers to one deterministic question"},
    ]


def test_wrong_and_drifted_answers_are_named() -> None:
    green = side(Answer("Lake Quoy"), Answer("Paint."), RIGHT[2])
    report = json.loads(findings(side(*RIGHT), green, {1: 0.5, 2: 1.0}).json())
    assert (report["similarity"]["below"], report["similarity"]["least"]) == (1, 0.5)
    assert report["failing"] == [
        {"id": "lake", "why": "not the expected answer"},
        {"id": "sky", "why": "similarity 0.5000"},
    ]


def test_a_report_fits_into_a_termination_message() -> None:
    items = tuple(Item(id=f"{i:063}", prompt="q", change=False) for i in range(1000))
    green = side(*[Answer(error="no answer within 60 s, " * 5)] * 1000)
    found = Findings(
        GoldenSet(items, "sha256:0"), side(*[Answer("a")] * 1000), green, {}, Threshold(0.98, ())
    )
    text = found.json()
    assert len(text.encode()) < MAX_BYTES
    report = json.loads(text)
    assert report["failingCount"] == 1000 > len(report["failing"]) > 10
    assert (report["similarity"]["least"], report["similarity"]["mean"]) == (None, None)


@pytest.mark.parametrize(
    ("calibrated", "fixed", "value"),
    [
        ((), None, 0.98),
        ((0.99, 1.0), None, 0.98),
        ((0.95, 0.9, 1.0), None, 0.9),
        ([0.5] + [0.9] * 39, None, 0.9),
        ((0.9, 0.9), 0.7, 0.7),
    ],
)
def test_the_threshold_is_what_one_side_keeps_with_itself(
    calibrated: list[float], fixed: float | None, value: float
) -> None:
    assert threshold(calibrated, fixed).value == value
