"""The state machine of updates: a table of turns, and every state with every observation."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import NOW
from zerolayer_operator.api.update import Promotion, UpdateSpec
from zerolayer_operator.api.update_status import End, FailedUpdate, Outcome, Step, UpdateStatus, Wish
from zerolayer_operator.decide.update import RAISE_PATIENCE, advance
from zerolayer_operator.decide.update_facts import (
    Assessment,
    Facts,
    Next,
    Side,
    canary_size,
    full_size,
    settings_hash,
)
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.observe.state import Problem

BLUE, GREEN, THIRD = "blue", "green", "third"
SETTINGS = UpdateSpec(soak="10m", max_soak="30m", blue_retention="5m")
MANUAL = SETTINGS.model_copy(update={"promotion": Promotion.MANUAL})
BEFORE = (Step.PREPARE, Step.SOAK, Step.AWAIT_PROMOTION, Step.PROMOTE)
REFUSES = Problem("AnchorNotFinite", "tensor a has a NaN")
PASS = Assessment(Outcome.PASS, "NoWorse", "no worse", 600)
FAIL = Assessment(Outcome.FAIL, "ErrorRateHigher", "5 % against 0 %", 600)
THIN = Assessment(Outcome.UNDECIDED, "TooFewSamples", "12 of 500", 12)

FULL = Side(size=9, ready=9)
SMALL = Side(size=1, ready=1)
NONE = Side(size=0, ready=0, current=False)
DOWN = Side(size=9, ready=0)


def record(step: Step, age: timedelta = timedelta(minutes=1), **changes: Any) -> UpdateStatus:
    began = wire_time(NOW - age)
    values: dict[str, Any] = {
        "step": step,
        "from_revision": BLUE,
        "to_revision": GREEN,
        "started_at": began,
        "step_started_at": began,
        "soak_started_at": None if step == Step.PREPARE else began,
        "switched_at": began if step == Step.RETAIN else None,
        "weight": 10 if step in {Step.SOAK, Step.AWAIT_PROMOTION, Step.PROMOTE} else 0,
    }
    return UpdateStatus(**{**values, **changes})


def facts(step: Step | None, **changes: Any) -> Facts:
    age = changes.pop("age", timedelta(minutes=1))
    serving = GREEN if step == Step.RETAIN else BLUE
    values: dict[str, Any] = {
        "now": NOW,
        "wanted": GREEN,
        "serving": serving,
        "settings": SETTINGS,
        "blue": FULL,
        "green": FULL if step == Step.RETAIN else SMALL,
        "most": 20,
        "record": record(step, age) if step is not None else None,
        "assessment": THIN,
    }
    return Facts(**{**values, **changes})


@dataclass(frozen=True)
class Turn:
    """Facts, and what comes of them."""

    facts: Facts
    step: Step | None
    serving: str = BLUE
    end: End | None = None
    reason: str | None = None


LONG = timedelta(minutes=11)
TURNS = {
    "nothing to do": Turn(facts(None, wanted=BLUE), None),
    "another revision is wanted": Turn(facts(None), Step.PREPARE),
    "it can't be made": Turn(facts(None, makeable=False), None),
    "the canary warms up": Turn(facts(Step.PREPARE, green=Side(1, 0)), Step.PREPARE),
    "the canary has not its size yet": Turn(facts(Step.PREPARE, blue=Side(20, 20)), Step.PREPARE),
    "the canary's figures are old": Turn(facts(Step.PREPARE, green=Side(1, 1, current=False)), Step.PREPARE),
    "the canary is warm": Turn(facts(Step.PREPARE), Step.SOAK),
    "blue has no worker": Turn(facts(Step.PREPARE, blue=DOWN), Step.PREPARE),
    "its workers refuse to start": Turn(
        facts(Step.PREPARE, green=Side(1, 0), refusal=REFUSES), Step.ROLL_BACK, reason="AnchorNotFinite"
    ),
    "the soak lasts": Turn(facts(Step.SOAK, assessment=PASS), Step.SOAK),
    "the soak is over, and it is no worse": Turn(facts(Step.SOAK, age=LONG, assessment=PASS), Step.PROMOTE),
    "the soak is over with too few samples": Turn(facts(Step.SOAK, age=LONG), Step.SOAK),
    "there is no verdict for too long": Turn(
        facts(Step.SOAK, age=timedelta(minutes=31)), Step.ROLL_BACK, reason="TooFewSamples"
    ),
    "it is worse": Turn(facts(Step.SOAK, assessment=FAIL), Step.ROLL_BACK, reason="ErrorRateHigher"),
    "a person decides": Turn(
        facts(Step.SOAK, age=LONG, settings=MANUAL, assessment=PASS), Step.AWAIT_PROMOTION
    ),
    "a person decides without a verdict": Turn(
        facts(Step.SOAK, age=LONG, settings=MANUAL), Step.AWAIT_PROMOTION
    ),
    "a person promotes amid the soak": Turn(facts(Step.SOAK, promote=GREEN), Step.PROMOTE),
    "a person meant another revision": Turn(facts(Step.SOAK, promote=THIRD), Step.SOAK),
    "a person takes his time": Turn(facts(Step.AWAIT_PROMOTION, age=timedelta(days=3)), Step.AWAIT_PROMOTION),
    "a person promotes": Turn(facts(Step.AWAIT_PROMOTION, promote=GREEN), Step.PROMOTE),
    "it turns out worse": Turn(
        facts(Step.AWAIT_PROMOTION, assessment=FAIL), Step.ROLL_BACK, reason="ErrorRateHigher"
    ),
    "green grows": Turn(facts(Step.PROMOTE, green=Side(10, 8)), Step.PROMOTE),
    "green carries all": Turn(facts(Step.PROMOTE, green=Side(10, 10)), Step.RETAIN, GREEN),
    "it gets worse while it grows": Turn(
        facts(Step.PROMOTE, assessment=FAIL), Step.ROLL_BACK, reason="ErrorRateHigher"
    ),
    "blue stays": Turn(facts(Step.RETAIN), Step.RETAIN, GREEN),
    "blue has stayed": Turn(facts(Step.RETAIN, age=timedelta(minutes=6)), None, GREEN, End.PROMOTED),
    "the switch is not in the Service yet": Turn(facts(Step.RETAIN, serving=BLUE), Step.RETAIN, GREEN),
    "green answers no more": Turn(facts(Step.RETAIN, green=DOWN), Step.ROLL_BACK, GREEN, reason="NoAnswer"),
    "nobody answers": Turn(facts(Step.RETAIN, green=DOWN, blue=DOWN), Step.RETAIN, GREEN),
    "green sleeps": Turn(facts(Step.RETAIN, green=Side(0, 0)), Step.RETAIN, GREEN),
    "a person goes back": Turn(
        facts(Step.RETAIN, roll_back=GREEN), Step.ROLL_BACK, GREEN, reason="Requested"
    ),
    "the spec is set back after the switch": Turn(
        facts(Step.RETAIN, wanted=BLUE), Step.ROLL_BACK, GREEN, reason="SpecSetBack"
    ),
    "a second change waits for the retention": Turn(facts(Step.RETAIN, wanted=THIRD), Step.RETAIN, GREEN),
    "the spec is set back amid the soak": Turn(facts(Step.SOAK, wanted=BLUE), None, BLUE, End.CANCELLED),
    "a second change replaces the canary": Turn(
        facts(Step.SOAK, wanted=THIRD), Step.PREPARE, BLUE, End.REPLACED
    ),
    "a second change that can't be made": Turn(
        facts(Step.SOAK, wanted=THIRD, makeable=False), None, BLUE, End.REPLACED
    ),
    "blue is gone by hand": Turn(facts(Step.SOAK, serving=GREEN, blue=NONE), Step.RETAIN, GREEN),
    "a third revision serves by hand": Turn(facts(Step.SOAK, serving=THIRD, wanted=THIRD), None, THIRD),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_turn(turn: Turn) -> None:
    found = advance(turn.facts)

    assert found.serving == turn.serving
    assert (found.record.step if found.record else None) == turn.step
    assert (found.finished.end if found.finished else None) == turn.end
    if turn.reason is not None:
        assert found.record is not None
        assert found.record.reason == turn.reason


def rolling(**changes: Any) -> Facts:
    told = record(
        Step.ROLL_BACK, reason="ErrorRateHigher", message="worse", decided_by="verdict", raise_to=10
    )
    return facts(None, record=changes.pop("record", told), **changes)


def test_roll_back_before_the_switch_waits_until_blue_carries_all() -> None:
    assert advance(rolling(blue=Side(9, 9))).record is not None
    over = advance(rolling(blue=Side(10, 10)))
    assert over.record is None
    assert over.finished is not None
    assert (over.finished.end, over.finished.reason) == (End.ROLLED_BACK, "ErrorRateHigher")
    assert over.failed is not None
    assert over.failed.revision == GREEN


def test_roll_back_does_not_wait_for_room_for_ever() -> None:
    told = record(Step.ROLL_BACK, RAISE_PATIENCE, reason="ErrorRateHigher", raise_to=10)

    assert advance(rolling(record=told, blue=Side(9, 9))).finished is not None


def test_roll_back_after_the_switch_grows_blue_first_unless_green_is_mute() -> None:
    after = {"serving": GREEN, "green": FULL}

    waits = advance(rolling(**{**after, "blue": Side(9, 2)}))
    assert (waits.serving, waits.record is not None) == (GREEN, True)
    back = advance(rolling(**{**after, "blue": Side(10, 10)}))
    assert (back.serving, back.record) == (BLUE, None)
    at_once = advance(rolling(**{**after, "blue": Side(9, 1), "green": DOWN}))
    assert at_once.serving == BLUE


def test_what_workers_refused_ends_as_refused() -> None:
    told = record(Step.ROLL_BACK, reason="AnchorNotFinite", decided_by="workers", soak_started_at=None)

    over = advance(rolling(record=told))

    assert over.finished is not None
    assert over.finished.end == End.REFUSED


@pytest.mark.parametrize(
    ("wanted", "settings", "again"),
    [(GREEN, SETTINGS, False), (THIRD, SETTINGS, True), (GREEN, MANUAL, True), (BLUE, SETTINGS, False)],
)
def test_failed_revision_is_tried_again_only_with_another_spec(
    wanted: str, settings: UpdateSpec, again: bool
) -> None:
    failed = FailedUpdate(
        revision=GREEN,
        settings=settings_hash(SETTINGS),
        reason="ErrorRateHigher",
        message="worse",
        failed_at=wire_time(NOW),
        retained_until=wire_time(NOW),
    )

    found = advance(facts(None, failed=failed, wanted=wanted, settings=settings))

    assert (found.record is not None) == again
    assert (found.failed is not None) == (wanted == GREEN and not again)


def test_sizes_carry_the_load() -> None:
    for weight, blue in itertools.product(range(1, 51), range(1, 60)):
        green = canary_size(weight, blue)
        # Each of the canary's workers gets no more than each of blue's.
        assert weight / green <= (100 - weight) / blue + 1e-9
        carried = record(Step.SOAK, weight=weight)
        assert full_size(carried, blue, 1000) * (100 - weight) >= 100 * blue
        assert full_size(carried, blue, blue) == blue


def everything() -> Iterator[Facts]:
    """Every step with every observation."""
    sides = (NONE, Side(1, 0), SMALL, Side(9, 3), FULL, Side(12, 12), DOWN)
    ages = (timedelta(minutes=1), LONG, timedelta(minutes=31))
    asked = ((None, None), (GREEN, None), (None, GREEN), (BLUE, BLUE))
    for step, age, serving, wanted in itertools.product(
        (None, *Step), ages, (BLUE, GREEN), (BLUE, GREEN, THIRD)
    ):
        for blue, green, assessment in itertools.product(sides, sides, (PASS, FAIL, THIN)):
            for (promote, back), refusal, settings in itertools.product(
                asked, (None, REFUSES), (SETTINGS, MANUAL)
            ):
                yield facts(
                    step,
                    age=age,
                    serving=serving,
                    wanted=wanted,
                    blue=blue,
                    green=green,
                    assessment=assessment,
                    promote=promote,
                    roll_back=back,
                    refusal=refusal,
                    settings=settings,
                )


def test_every_state_with_every_observation_is_safe() -> None:
    count = 0
    for seen in everything():
        found = advance(seen)
        is_safe(seen, found)
        count += 1
    assert count > 100_000


def is_safe(seen: Facts, found: Next) -> None:
    """What holds whatever was observed."""
    before = seen.record
    step = found.record.step if found.record is not None else None
    assert found.serving in {BLUE, GREEN}
    if before is None:
        assert found.serving == seen.serving
        assert step in {None, Step.PREPARE}
        return
    if found.serving == GREEN and seen.serving == BLUE and before.step != Step.RETAIN:
        # Requests move only to workers that are there.
        assert before.step == Step.PROMOTE
        assert seen.green.ready >= full_size(before, seen.blue.size, seen.most)
    if found.serving == BLUE and seen.serving == GREEN:
        assert before.step == Step.ROLL_BACK
        assert seen.blue.ready > 0 or seen.blue.has(before.raise_to or 0)
    worse = seen.assessment.outcome == Outcome.FAIL and before.step in BEFORE and before.step != Step.PREPARE
    if worse and seen.serving == BLUE:
        assert step not in {Step.PROMOTE, Step.RETAIN}
        assert found.serving == BLUE
    if step == Step.PROMOTE and before.step != Step.PROMOTE:
        assert seen.promote == GREEN or seen.assessment.outcome == Outcome.PASS
    if found.failed is not None:
        assert found.failed.revision == seen.wanted
        assert found.finished is not None


def test_an_update_comes_to_rest() -> None:
    """Where nothing else changes, looking again and again changes nothing any more."""
    for seen in itertools.islice(everything(), 0, None, 7):
        found, looks = advance(seen), 0
        while True:
            following = advance(
                replace(seen, record=found.record, serving=found.serving, failed=found.failed)
            )
            if (following.record, following.serving) == (found.record, found.serving):
                break
            found, looks = following, looks + 1
            assert looks < 12, seen


@pytest.mark.parametrize(
    ("asked", "standing"),
    [
        ({"roll_back": GREEN}, (Wish.ROLL_BACK,)),
        ({"promote": GREEN, "roll_back": GREEN}, (Wish.PROMOTE, Wish.ROLL_BACK)),
        ({"promote": THIRD}, ()),
    ],
)
def test_update_that_begins_notes_what_was_asked_of_an_earlier_one(asked, standing) -> None:
    begun = advance(facts(None, **asked)).record
    assert begun is not None
    assert begun.standing_wishes == standing


@pytest.mark.parametrize(
    ("step", "field"),
    [
        (Step.SOAK, "soak_started_at"),
        (Step.RETAIN, "switched_at"),
        (Step.ROLL_BACK, "step_started_at"),
    ],
)
@pytest.mark.parametrize("moment", [None, "2150-01-01T00:00:00Z"])
def test_a_moment_that_a_hand_took_away_or_moved_ahead_holds_nothing_up(
    step: Step, field: str, moment: str | None
) -> None:
    altered = record(step, raise_to=20).model_copy(update={field: moment})
    now = facts(step, record=altered)
    found = advance(now).record
    assert found is not None
    assert found.step == step
    assert getattr(found, field) == wire_time(NOW)
    ended = advance(replace(now, record=found, now=NOW + timedelta(hours=1)))
    assert ended.record is None or ended.record.step != step


def test_moments_of_a_clock_that_was_ahead_stay() -> None:
    ahead = record(Step.SOAK, -timedelta(minutes=4))
    found = advance(facts(Step.SOAK, record=ahead)).record
    assert found is not None
    assert (found.started_at, found.soak_started_at) == (ahead.started_at, ahead.soak_started_at)


@pytest.mark.parametrize(
    ("settings", "longest_s"),
    [
        ({"soak": "0s"}, 600),
        ({"soak": "1m"}, 600),
        ({"soak": "1h"}, 3 * 3600),
        ({"soak": "0s", "max_soak": "0s"}, 0),
    ],
)
def test_soak_of_no_time_leaves_time_for_a_verdict(settings: dict[str, str], longest_s: int) -> None:
    assert UpdateSpec(**settings).max_soak_s == longest_s
