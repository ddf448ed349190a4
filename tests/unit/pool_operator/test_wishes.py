"""What people ask of an update, and what an annotation that stays on the pool says of a later one."""

from typing import Any

import pytest

from zerolayer_operator.api import names
from zerolayer_operator.api.update_status import Step, UpdateStatus, Wish
from zerolayer_operator.observe.state import Wishes
from zerolayer_operator.observe.wishes import wishes

BEGAN = "2026-01-01T12:00:00Z"
BEFORE, SINCE = "2026-01-01T11:59:59Z", "2026-01-01T12:00:01Z"
PROMOTE, ROLL_BACK = names.ANNOTATION_PROMOTE, names.ANNOTATION_ROLL_BACK


def update(*standing: Wish) -> UpdateStatus:
    return UpdateStatus(
        step=Step.SOAK, from_revision="old", to_revision="abc", started_at=BEGAN, standing_wishes=standing
    )


def entry(time: str | None, *keys: str, **more: Any) -> dict[str, Any]:
    """What one program has set, and when."""
    fields = {"f:annotations": {".": {}, **{f"f:{key}": {} for key in keys}}}
    return {"time": time, "fieldsV1": {"f:metadata": fields, **more}}


def pool(annotations: dict[str, str] | None, *entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations, "managedFields": list(entries)}}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, Wishes()),
        ({PROMOTE: "abc"}, Wishes(promote="abc")),
        ({ROLL_BACK: "abc", PROMOTE: "d"}, Wishes("d", "abc")),
    ],
)
@pytest.mark.parametrize("going_on", [None, update()])
def test_annotations_are_wishes(annotations, expected: Wishes, going_on: UpdateStatus | None) -> None:
    assert wishes(pool(annotations), going_on) == expected


@pytest.mark.parametrize(
    ("times", "heard"),
    [
        ([SINCE], True),
        ([BEGAN], True),
        ([BEFORE], False),
        ([BEFORE, SINCE], True),
        ([], True),
        ([None], True),
    ],
    ids=["since", "at once", "before", "again", "unknown", "no time"],
)
def test_wish_that_is_older_than_the_update_decides_nothing(times: list[str | None], heard: bool) -> None:
    """It stays on the pool when the revision that it names is tried again."""
    other = {"time": SINCE, "fieldsV1": {"f:spec": {}}}
    found = wishes(pool({PROMOTE: "abc"}, other, *(entry(time, PROMOTE) for time in times)), update())
    assert found == (Wishes(promote="abc") if heard else Wishes(standing=(Wish.PROMOTE,)))


@pytest.mark.parametrize(
    ("entries", "heard"),
    [
        ([entry(BEFORE, ROLL_BACK)], False),
        ([entry(SINCE, ROLL_BACK, PROMOTE)], False),
        ([entry(SINCE, ROLL_BACK, "team")], False),
        ([entry(SINCE, ROLL_BACK, **{"f:spec": {}})], False),
        ([entry(SINCE, ROLL_BACK, "team"), entry(SINCE, ROLL_BACK)], True),
        ([entry(SINCE, ROLL_BACK)], True),
        ([entry(BEGAN, ROLL_BACK)], False),
        ([], False),
    ],
    ids=["before", "with the other", "with another", "with a spec", "twice", "again", "at once", "unknown"],
)
def test_wish_that_was_there_when_the_update_began_counts_once_it_is_set_anew(
    entries: list[dict[str, Any]], heard: bool
) -> None:
    """Whatever the same program sets later renews the time of all that it has set."""
    found = wishes(pool({ROLL_BACK: "abc"}, *entries), update(Wish.ROLL_BACK))
    assert found == (Wishes(roll_back="abc") if heard else Wishes(standing=(Wish.ROLL_BACK,)))


def test_later_wish_is_heard_beside_one_that_stands() -> None:
    both = {PROMOTE: "abc", ROLL_BACK: "abc"}
    found = wishes(pool(both, entry(SINCE, PROMOTE, ROLL_BACK)), update(Wish.ROLL_BACK))
    assert found == Wishes(promote="abc", standing=(Wish.ROLL_BACK,))


@pytest.mark.parametrize("annotations", [{}, {ROLL_BACK: "another"}])
def test_wish_that_is_gone_or_names_another_revision_stands_no_more(annotations: dict[str, str]) -> None:
    assert wishes(pool(annotations), update(Wish.ROLL_BACK)).standing == ()
