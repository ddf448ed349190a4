"""What may be asked of an update at which step, and how what is waited for comes out."""

from typing import Any

import pytest

from zerolayer_dev.testing.updating_pools import (
    BLUE,
    GREEN,
    NOW,
    body_with,
    condition,
    failed,
    finished,
    status_with,
    update_at,
)
from zerolayer_kubectl.pool import Pool, read
from zerolayer_kubectl.waiting import Hope
from zerolayer_kubectl.wishes import RefusedError, to_promote, to_roll_back
from zerolayer_operator.api.status import Phase
from zerolayer_operator.api.update_status import End, Step, Wish

SOAKING = status_with(update_at(Step.SOAK))
MOVES = condition("Progressing", "Updating", "revision b warms up", holds=True)
OTHER = "0123456789"


def pool(status: dict[str, Any], **more: Any) -> Pool:
    return read(body_with(status, **more), None)


@pytest.mark.parametrize("step", [Step.SOAK, Step.AWAIT_PROMOTION])
def test_a_canary_can_be_promoted(step: Step) -> None:
    wish = to_promote(pool(status_with(update_at(step))), NOW)

    assert wish.annotations == {"zerolayer.dev/promote": GREEN, "zerolayer.dev/rollback": None}
    assert "verdict: Undecided, 180 answers?" in wish.question


@pytest.mark.parametrize("step", [step for step in Step if step != Step.ROLL_BACK])
def test_an_update_can_be_rolled_back(step: Step) -> None:
    wish = to_roll_back(pool(status_with(update_at(step))))

    assert wish.annotations == {"zerolayer.dev/rollback": GREEN, "zerolayer.dev/promote": None}


def test_a_wish_that_stands_already_is_written_anew() -> None:
    again = pool(SOAKING, annotations={"zerolayer.dev/promote": GREEN, "zerolayer.dev/rollback": GREEN})
    other = pool(SOAKING, annotations={"zerolayer.dev/promote": BLUE})

    assert to_promote(again, NOW).stale == ("zerolayer.dev/promote",)
    assert to_roll_back(again).stale == ("zerolayer.dev/rollback",)
    assert to_promote(other, NOW).stale == ()


@pytest.mark.parametrize(
    ("status", "spec", "says"),
    [
        (status_with(update_at(Step.PREPARE)), {}, "is not warm yet"),
        (status_with(update_at(Step.PROMOTE)), {}, "is being promoted already"),
        (status_with(update_at(Step.RETAIN)), {}, "has taken over already"),
        (status_with(update_at(Step.ROLL_BACK)), {}, "is being rolled back"),
        (SOAKING, {"paused": True}, "is paused"),
        ({}, {}, "no operator has looked at pool facts yet"),
        (status_with(), {}, "there is nothing to promote: pool facts has no update going on"),
        (status_with(failed=failed()), {}, f"revision {GREEN} failed (WrongAnswers)"),
        (status_with(history=(finished(End.PROMOTED),)), {}, "set the spec back to return to revision"),
        (status_with(phase=Phase.UPDATING, conditions=(MOVES,)), {}, "has no canary: revision b warms up"),
    ],
)
def test_what_can_not_be_promoted_is_refused(status: dict[str, Any], spec: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError) as refused:
        to_promote(pool(status, **spec), NOW)

    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (status_with(update_at(Step.ROLL_BACK)), "is being rolled back already"),
        (status_with(), "there is nothing to roll back"),
    ],
)
def test_what_can_not_be_rolled_back_is_refused(status: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError) as refused:
        to_roll_back(pool(status))

    assert says in str(refused.value)


def looks(hope: Hope, *statuses: dict[str, Any]) -> list[bool | None]:
    """What each look finds: good, bad, or nothing yet."""
    found = [hope.look(pool(status)) for status in statuses]
    return [outcome.good if outcome is not None else None for outcome in found]


@pytest.mark.parametrize(
    ("end", "good"),
    [(End.PROMOTED, True), (End.ROLLED_BACK, False), (End.REFUSED, False), (End.CANCELLED, False)],
)
def test_an_update_that_was_seen_comes_out_as_its_history_says(end: End, good: bool) -> None:
    over = status_with(history=(finished(end),))

    assert looks(Hope(), SOAKING, status_with(update_at(Step.RETAIN)), over) == [None, None, good]


def test_the_past_of_a_revision_does_not_count_for_its_next_attempt() -> None:
    again = status_with(update_at(Step.SOAK), history=(finished(End.ROLLED_BACK),))
    over = status_with(history=(finished(End.PROMOTED), finished(End.ROLLED_BACK)))

    assert looks(Hope(), again, over) == [None, True]


def test_an_update_that_replaces_another_is_followed_in_its_place() -> None:
    past = finished(End.REPLACED)
    between = status_with(history=(past,))
    then = status_with(update_at(Step.SOAK, to_revision=OTHER), history=(past,))
    over = status_with(history=(finished(End.PROMOTED, to_revision=OTHER), past))

    assert looks(Hope(), SOAKING, between, then, over) == [None, None, None, True]


@pytest.mark.parametrize(
    ("status", "good"),
    [
        (status_with(history=(finished(End.ROLLED_BACK),)), True),
        (status_with(failed=failed(), phase=Phase.DEGRADED), False),
        (status_with(phase=Phase.DEGRADED), None),
        (status_with(phase=Phase.UPDATING), None),
        (status_with(observed_generation=0), None),
        ({}, None),
    ],
    ids=["as asked", "failed", "a problem", "about to begin", "not seen", "new"],
)
def test_a_pool_without_an_update(status: dict[str, Any], good: bool | None) -> None:
    assert looks(Hope(), status) == [good]


def test_who_asked_for_a_promotion_waits_for_the_switch_only() -> None:
    taken = status_with(update_at(Step.RETAIN))
    back = status_with(history=(finished(End.ROLLED_BACK),))

    assert looks(Hope(GREEN, until_over=False), SOAKING, taken) == [None, True]
    assert looks(Hope(GREEN, until_over=False), SOAKING, back) == [None, False]


def test_who_asked_for_a_roll_back_hopes_for_one() -> None:
    rolling = status_with(update_at(Step.ROLL_BACK))
    back = status_with(failed=failed(), history=(finished(End.ROLLED_BACK),))
    promoted = status_with(history=(finished(End.PROMOTED),))

    assert looks(Hope(GREEN, promoted=False, until_over=False), SOAKING, rolling, back) == [None, None, True]
    assert looks(Hope(GREEN, promoted=False, until_over=False), SOAKING, promoted) == [None, False]


def test_nobody_waits_for_a_person() -> None:
    awaiting = status_with(update_at(Step.AWAIT_PROMOTION))
    outcome = Hope().look(pool(awaiting))

    assert outcome is not None
    assert (outcome.good, outcome.undecided) == (False, True)
    assert "a person has to decide: kubectl zerolayer promote facts" in outcome.message


@pytest.mark.parametrize(
    ("standing", "open_"), [((), True), ((Wish.PROMOTE,), False)], ids=["decided", "of an earlier update"]
)
def test_a_person_that_has_decided_is_waited_for_no_more(standing: tuple[Wish, ...], open_: bool) -> None:
    awaiting = status_with(update_at(Step.AWAIT_PROMOTION, standing_wishes=standing))
    decided = pool(awaiting, annotations={"zerolayer.dev/promote": GREEN})

    assert (Hope().look(decided) is None) is open_
    assert Hope(GREEN, until_over=False).look(pool(awaiting)) is None


def test_nobody_waits_for_a_paused_pool() -> None:
    outcome = Hope().look(pool(SOAKING, paused=True))

    assert outcome is not None
    assert not outcome.good
    assert BLUE not in outcome.message
    assert "unset spec.paused" in outcome.message
