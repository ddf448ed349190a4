from typing import Any

import pytest

from zerolayer_dev.demo import timeline
from zerolayer_dev.demo.timeline import Count, Mark, Moment, Span
from zerolayer_dev.testing.askers import Answer

BLUE, GREEN = "b" * 10, "c" * 10


def moment(at: float, **fields: Any) -> Moment:
    usual: dict[str, Any] = {
        "step": "",
        "green": "",
        "verdict": "",
        "reason": "",
        "serving": BLUE,
        "weights": {BLUE: 100},
        "ready": {BLUE: 1},
    }
    return Moment(at=at, **usual | fields)


def soak(at: float, **fields: Any) -> Moment:
    shared: dict[str, Any] = {
        "step": "Soak",
        "green": GREEN,
        "verdict": "Undecided",
        "weights": {BLUE: 75, GREEN: 25},
        "ready": {BLUE: 1, GREEN: 1},
    }
    return moment(at, **shared | fields)


MOMENTS = (
    moment(100),
    moment(101, step="Prepare", green=GREEN, verdict="Undecided", ready={BLUE: 1, GREEN: 0}),
    soak(102),
    soak(104),
    soak(110, verdict="Pass"),
    moment(
        111, step="Retain", green=GREEN, verdict="Pass", serving=GREEN, weights={GREEN: 100}, ready={GREEN: 1}
    ),
    moment(114, serving=GREEN, weights={GREEN: 100}, ready={GREEN: 1}),
)


def answer(began: float, revision: str = BLUE, **fields: Any) -> Answer:
    return Answer(began, began + 0.5, revision, **fields)


def test_what_is_drawn_has_a_value_for_each_moment_and_revision() -> None:
    drawn = timeline.series(MOMENTS, ())

    assert drawn.revisions == (BLUE, GREEN)
    assert drawn.seconds == (0, 1, 2, 4, 10, 11, 14)
    assert drawn.weights == {BLUE: (100, 100, 75, 75, 75, 0, 0), GREEN: (0, 0, 25, 25, 25, 100, 100)}
    assert drawn.ready == {BLUE: (1, 1, 1, 1, 1, 0, 0), GREEN: (0, 0, 1, 1, 1, 1, 1)}


def test_steps_follow_each_other_and_end_with_the_update() -> None:
    assert timeline.series(MOMENTS, ()).spans == (
        Span("Prepare", 1, 2),
        Span("Soak", 2, 11),
        Span("Retain", 11, 14),
    )


@pytest.mark.parametrize(
    ("moments", "marks"),
    [
        (MOMENTS, (Mark(10, "Pass"), Mark(11, "takes over"))),
        (
            (soak(0), soak(5, verdict="Fail", reason="WrongAnswers"), moment(6)),
            (Mark(5, "Fail: WrongAnswers"),),
        ),
        ((moment(0, serving=""), moment(1)), ()),
    ],
    ids=["promoted", "rolled back", "the first revision"],
)
def test_verdicts_and_take_overs_are_marked(moments: tuple[Moment, ...], marks: tuple[Mark, ...]) -> None:
    assert timeline.series(moments, ()).marks == marks


def test_answers_are_counted_in_bins_and_failures_apart() -> None:
    answers = (answer(100), answer(104.9), answer(105, GREEN), answer(106, "", failure="503"))
    drawn = timeline.series(MOMENTS, answers)

    assert drawn.bins == (2.5, 7.5, 12.5)
    assert drawn.rates == {BLUE: (2 / 5, 0, 0), GREEN: (0, 1 / 5, 0)}
    assert drawn.errors == (6.5,)


def test_nothing_seen_can_not_be_drawn() -> None:
    with pytest.raises(ValueError, match="nothing was seen"):
        timeline.series((), ())


def test_the_canarys_share_is_counted_while_it_has_its_weight() -> None:
    early, late = answer(102.5, GREEN), answer(111, GREEN)
    soaked = [answer(104 + place, GREEN if place == 0 else BLUE) for place in range(4)]
    found = timeline.count(MOMENTS, [early, *soaked, late], [])

    assert (found.canary, found.shared) == ({GREEN: 1}, {GREEN: 4})


def test_conversations_of_two_versions_are_counted_and_those_that_were_not_told() -> None:
    same = [answer(100), answer(101), answer(102, "", failure="reset")]
    told = [answer(100, GREEN), answer(101, BLUE, changed=True)]
    untold = [answer(100, GREEN), answer(101, BLUE)]

    assert timeline.count(MOMENTS, [answer(100)], [same, told, untold, []]) == Count(
        requests=8, failures=1, canary={GREEN: 0}, shared={GREEN: 0}, conversations=3, mixed=2, untold=1
    )


def test_revisions_are_named_by_the_anchor_that_their_answers_name() -> None:
    answers = (answer(100), answer(104, GREEN, anchor="v1"), answer(105, "", failure="reset"))

    assert timeline.versions(MOMENTS, answers) == {BLUE: "base", GREEN: "v1"}
